/** How far long work is: a bar on a terminal, a line now and then elsewhere; never on standard output. */
import { Presets, SingleBar } from "cli-progress";

/** Items between two lines where there is no terminal. */
const LINE_EVERY = 100_000;

export interface Progress {
  /** `total` is absent where nobody knows it. */
  update(what: string, done: number, total?: number): void;
  /** Gives the terminal back; may be called again. */
  stop(): void;
}

/** @param unit what is counted, in the plural */
export function showProgress(unit: string, stream: Stream = process.stderr): Progress {
  return stream.isTTY ? bars(unit, stream) : lines(unit, stream);
}

type Stream = NodeJS.WriteStream | { isTTY: false; write(line: string): boolean };

/** One bar after the other: a bar that is started twice would leave a timer behind. */
function bars(unit: string, stream: NodeJS.WriteStream): Progress {
  let current: string | undefined;
  let bar: SingleBar | undefined;
  return {
    update: (what, done, total) => {
      if (what !== current) {
        bar?.stop();
        const format = total === undefined ? "{what} {value}" : "{what} [{bar}] {value}/{total}";
        const options = { hideCursor: true, clearOnComplete: true, stream };
        bar = new SingleBar({ ...options, format: `${format} ${unit}` }, Presets.shades_classic);
        bar.start(total ?? 0, done, { what });
      }
      current = what;
      if (total !== undefined) bar?.setTotal(total);
      bar?.update(done);
    },
    stop: () => bar?.stop(),
  };
}

function lines(unit: string, stream: Stream): Progress {
  let current: string | undefined;
  let next = LINE_EVERY;
  return {
    update: (what, done, total) => {
      if (what !== current) next = LINE_EVERY;
      current = what;
      if (done < next) return;
      next = done + LINE_EVERY;
      stream.write(`${what}: ${done}${total === undefined ? "" : ` of ${total}`} ${unit}\n`);
    },
    stop: () => undefined,
  };
}

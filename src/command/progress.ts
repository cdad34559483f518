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
export function showProgress(unit: string, stream = process.stderr): Progress {
  return stream.isTTY ? bar(unit, stream) : lines(unit, stream);
}

function bar(unit: string, stream: NodeJS.WriteStream): Progress {
  const known = `{what} [{bar}] {value}/{total} ${unit} {eta_formatted}`;
  const single = new SingleBar(
    { format: known, hideCursor: true, clearOnComplete: true, stream },
    Presets.shades_classic,
  );
  let current: string | undefined;
  return {
    update: (what, done, total = done) => {
      if (what !== current) single.start(total, done, { what });
      current = what;
      single.setTotal(total);
      single.update(done);
    },
    stop: () => single.stop(),
  };
}

function lines(unit: string, stream: NodeJS.WriteStream): Progress {
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

/** What the commands show beside their answer, always on standard error. */
import type { WriteStream } from "node:tty";
import { Presets, SingleBar } from "cli-progress";
import type { Progress } from "./import.ts";

/** Answers between two lines where there is no terminal. */
const LINE_EVERY = 10_000;
const UNITS = { reading: "lines", sending: "reports", proving: "receipts" } as const;

/** What a file or a server says must not steer a terminal, nor begin a line of its own. */
export function printable(line: string): string {
  return line.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ");
}

export interface Display {
  onProgress: (progress: Progress) => void;
  onNotice: (notice: string) => void;
  /** Gives the terminal back; may be called again. */
  stop: () => void;
}

/** A bar on a terminal, a line now and then elsewhere. */
export function showProgress(stream: WriteStream): Display {
  return stream.isTTY ? bar(stream) : lines(stream);
}

function bar(stream: WriteStream): Display {
  const format = "{phase} [{bar}] {value}/{total} {eta_formatted}";
  const single = new SingleBar({ format, hideCursor: true, stream }, Presets.shades_classic);
  let phase = "";
  return {
    onProgress: ({ phase: now, done, total = done }) => {
      if (phase !== now) single.start(total, done, { phase: now });
      phase = now;
      single.setTotal(total);
      single.update(done);
    },
    onNotice: (notice) => {
      // The bar redraws itself below.
      stream.clearLine(0);
      stream.cursorTo(0);
      stream.write(`${printable(notice)}\n`);
    },
    stop: () => {
      single.stop();
    },
  };
}

function lines(stream: WriteStream): Display {
  let next = LINE_EVERY;
  let phase = "";
  return {
    onProgress: ({ phase: now, done, total }) => {
      if (phase !== now) next = LINE_EVERY;
      phase = now;
      if (done < next && done !== total) return;
      next = done + LINE_EVERY;
      const of = total === undefined ? "" : ` of ${total}`;
      stream.write(`${now}: ${done}${of} ${UNITS[now]}\n`);
    },
    onNotice: (notice) => {
      stream.write(`${printable(notice)}\n`);
    },
    stop: () => undefined,
  };
}

/** Lines of a file with their places, in constant memory. */
import { readSync } from "node:fs";
import { concat } from "../core/text.ts";

const CHUNK_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

export interface RawLine {
  /** Without the newline; undefined when there are more than `bytesMax` of them. */
  bytes: Uint8Array | undefined;
  start: number;
  /** Where the next line starts. */
  end: number;
  /** False for a last line that no newline ends. */
  complete: boolean;
}

/** The lines that start in `from` … `to`−1; what was appended beyond `to` is not looked at. */
export function* readLines(
  fd: number,
  { from, to, bytesMax }: { from: number; to: number; bytesMax: number },
): Generator<RawLine> {
  let parts: Uint8Array[] = [];
  let start = from;
  let position = from;
  const take = (end: number, complete: boolean): RawLine => {
    const length = end - start - (complete ? 1 : 0);
    const line = { bytes: length > bytesMax ? undefined : concat(...parts), start, end, complete };
    parts = [];
    start = end;
    return line;
  };
  while (position < to) {
    const buffer = new Uint8Array(Math.min(CHUNK_BYTES, to - position));
    const chunk = buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, position));
    if (chunk.length === 0) break; // cut shorter since its size was asked for
    let begin = 0;
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, begin)) {
      parts.push(chunk.subarray(begin, at));
      begin = at + 1;
      yield take(position + begin, true);
    }
    position += chunk.length;
    // Of a line that is too long already, nothing more is kept.
    if (position - start <= bytesMax + CHUNK_BYTES) parts.push(chunk.subarray(begin));
  }
  if (position > start) yield take(position, false);
}

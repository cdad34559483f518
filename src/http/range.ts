/** Which bytes of a file are asked for (RFC 9110 §14). */
import type { IncomingHttpHeaders } from "node:http";

export interface ByteRange {
  from: number;
  to: number;
}

const RANGE = /^bytes=\s*([0-9]*)-([0-9]*)\s*$/i;

/**
 * `whole`: no range is asked for, or none that holds here. Several at once, and what is no range of bytes, may be
 * answered by the whole (§14.2), and are; so is a range of a file that is not the one that `If-Range` names
 * (§13.1.5), or that it names by a date, as which we know none.
 *
 * @param file of `bytes`, under this entity tag
 */
export function rangeOf(
  headers: Pick<IncomingHttpHeaders, "range"> & Readonly<Record<string, unknown>>,
  { bytes, etag }: { bytes: number; etag: string },
): ByteRange | "whole" | "unsatisfiable" {
  const unless = headers["if-range"];
  if (headers.range === undefined || (unless !== undefined && unless !== etag)) return "whole";
  const [, first = "", last = ""] = RANGE.exec(headers.range) ?? [];
  if (first === "") {
    const length = Number(last);
    if (last === "") return "whole";
    return length === 0 || bytes === 0
      ? "unsatisfiable"
      : { from: Math.max(0, bytes - length), to: bytes };
  }
  if (last !== "" && Number(last) < Number(first)) return "whole";
  if (Number(first) >= bytes) return "unsatisfiable";
  return { from: Number(first), to: last === "" ? bytes : Math.min(Number(last) + 1, bytes) };
}

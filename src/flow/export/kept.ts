/** Where the service keeps what it has made. */
import type { ExportRow } from "../../store/exports.ts";

type Kept = Pick<ExportRow, "log" | "id" | "format">;

export function keptAt({ log, id, format }: Kept): string {
  return `${log}/${id}.${format}`;
}

/** The note of its manifest, as it was signed when the file was made. */
export function noteAt(kept: Kept): string {
  return `${keptAt(kept)}.note`;
}

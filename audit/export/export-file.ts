/** The file that is checked, wherever it lies. */
import type { Column, Format, Row } from "../../src/core/export/tables.ts";

export interface ExportFile {
  name: string;
  /** Base64, and how many bytes it is of. Throws `CannotLook` where it cannot be read. */
  digest(): Promise<{ bytes: bigint; sha256: string }>;
  /** To be gone through once; throws `Unreadable` where the file is of another form. */
  rows(format: Format, columns: readonly Column[]): AsyncIterable<Row>;
}

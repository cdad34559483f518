/** A CSV file as format/csv.ts writes it, read back. */
import { pipeline } from "node:stream";
import { parse } from "csv-parse";
import type { Row } from "../core/export/tables.ts";
import { importedCell } from "./csv.ts";

/**
 * Its rows behind the header, one after the other; an empty cell is nothing. A reader that stops early leaves
 * nothing open.
 *
 * @throws what `chunks` throws, and CsvError on what is no CSV
 */
export async function* readCsv(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Row> {
  const parser = parse({ from: 2, record_delimiter: "\r\n" });
  // What ends the one early ends the other, and what fails is thrown by the loop.
  pipeline(chunks, parser, () => undefined);
  for await (const record of parser) {
    const cells: string[] = record;
    yield cells.map((cell) => (cell === "" ? null : importedCell(cell)));
  }
}

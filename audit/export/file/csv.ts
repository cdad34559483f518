/** Rows of a CSV file, by a reader that is not the service's; its bytes are those that its rows are written as. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream";
import { CsvError, parse } from "csv-parse";
import type { Column, Row } from "../../../src/core/export/tables.ts";
import { csvLine, readCell } from "../csv.ts";
import { Unreadable } from "../unreadable.ts";

/** Far above any row of ours: a quote that nobody closes must not fill memory. */
const ROW_CHARS_MAX = 4 * 1024 * 1024;

/** @throws Unreadable */
export async function* readCsv(path: string, columns: readonly Column[]): AsyncGenerator<Row> {
  const parser = parse({ record_delimiter: "\r\n", max_record_size: ROW_CHARS_MAX });
  // What ends the one early ends the other, and what fails is thrown by the loop.
  const file = createReadStream(path);
  const [given, written] = [createHash("sha256"), createHash("sha256")];
  file.on("data", (chunk) => given.update(chunk));
  pipeline(file, parser, () => {});
  const names = columns.map(({ name }) => name);
  let isHeader = true;
  try {
    for await (const record of parser) {
      const texts: string[] = record;
      const row = texts.map(readCell);
      written.update(csvLine(row));
      if (!isHeader) yield row;
      else if (texts.join() === names.join()) isHeader = false;
      else throw new Unreadable(`its columns are ${texts.join(", ")}`);
    }
  } catch (error) {
    if (error instanceof CsvError) throw new Unreadable(`it is not CSV: ${error.message}`);
    throw error;
  }
  if (isHeader) throw new Unreadable("it has not even a line with its columns");
  // A guard that is gone, quotes for nothing, a line that does not end: the cells are the same, the file is not.
  if (!given.digest().equals(written.digest())) {
    throw new Unreadable(
      "its cells are not written as such a file has them: guards, quotes, line ends",
    );
  }
}

/** Rows of a CSV file, by a reader that is not the service's. */
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream";
import { CsvError, parse } from "csv-parse";
import type { Column, Row } from "../../../src/core/export/tables.ts";
import { readCell } from "../csv.ts";
import { Unreadable } from "../unreadable.ts";

/** Far above any row of ours: a quote that nobody closes must not fill memory. */
const ROW_CHARS_MAX = 4 * 1024 * 1024;

/** @throws Unreadable */
export async function* readCsv(path: string, columns: readonly Column[]): AsyncGenerator<Row> {
  const parser = parse({ record_delimiter: "\r\n", max_record_size: ROW_CHARS_MAX });
  // What ends the one early ends the other, and what fails is thrown by the loop.
  pipeline(createReadStream(path), parser, () => {});
  const names = columns.map(({ name }) => name);
  let isHeader = true;
  try {
    for await (const record of parser) {
      const texts: string[] = record;
      if (!isHeader) yield texts.map(readCell);
      else if (texts.join() === names.join()) isHeader = false;
      else throw new Unreadable(`its columns are ${texts.join(", ")}`);
    }
  } catch (error) {
    if (error instanceof CsvError) throw new Unreadable(`it is not CSV: ${error.message}`);
    throw error;
  }
  if (isHeader) throw new Unreadable("it has not even a line with its columns");
}

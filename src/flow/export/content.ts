/** A sheet as the bytes of a file, and what is counted while they are made. */
import type { Column, Format, Page } from "../../core/export/tables.ts";
import { type Figures, Totals } from "../../core/export/totals.ts";
import { writeCsv } from "../../format/csv.ts";
import { writeNdjson } from "../../format/ndjson.ts";
import { writeParquet } from "../../format/parquet.ts";
import type { Sheet } from "./source.ts";

export interface Content {
  /** To be taken once; a reader that stops early leaves nothing open. */
  bytes: AsyncIterable<Uint8Array>;
  /** Of all that is in the file, when its last byte was taken. */
  figures: () => Promise<Figures>;
}

type Write = (columns: readonly Column[], pages: AsyncIterable<Page>) => AsyncIterable<Uint8Array>;

const WRITE: Readonly<Record<Format, Write>> = {
  csv: writeCsv,
  ndjson: writeNdjson,
  parquet: writeParquet,
};

/** Bytes that say nothing of when or by whom they were made: the same sheet is the same file, always. */
export function contentOf({ columns, pages, csv }: Sheet, format: Format): Content {
  if (format === "csv" && csv !== undefined) return csv;
  const totals = new Totals(columns);
  return {
    bytes: WRITE[format](columns, counted(pages, totals)),
    figures: async () => totals.figures,
  };
}

async function* counted(pages: AsyncIterable<Page>, totals: Totals): AsyncGenerator<Page> {
  for await (const page of pages) {
    totals.add(page);
    yield page;
  }
}

/** What a file is made from. */
import type { Parameters } from "../../core/export/manifest.ts";
import type { Column, Page } from "../../core/export/tables.ts";
import type { Figures } from "../../core/export/totals.ts";
import type { Transaction } from "../../store/connect.ts";

/** Of which log, and of which of its entries. */
export interface Origin {
  /** Sees one state of the database, whatever is written meanwhile: REPEATABLE READ. */
  tx: Transaction;
  log: string;
  /** Entries 0 … asOf−1 count. */
  asOf: bigint;
  parameters: Parameters;
  /** Rows of `portal` that are read at once, which no file shows; left out, as many as memory has room for. */
  pageRows?: number;
}

/** A table that is read while it is written out: memory knows a page of it. */
export interface Sheet {
  columns: readonly Column[];
  /** In the order that core/export/tables.ts says; to be gone through once. */
  pages: AsyncIterable<Page>;
  /** Where the database itself can write the CSV file, to the same bytes, and count what is in it. */
  csv?: { bytes: AsyncIterable<Uint8Array>; figures: () => Promise<Figures> };
}

export type Source = (origin: Origin) => Sheet;

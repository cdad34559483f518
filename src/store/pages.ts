/** Rows of a long answer, a page at a time, on a connection that is free for other queries between two pages. */
import type postgres from "postgres";
import type { Transaction } from "./connect.ts";

let cursors = 0;

/**
 * A cursor of the transaction's own: postgres.js has one that keeps its connection to itself, so that whoever
 * asks anything meanwhile needs a second one, and two of them wait for each other.
 *
 * @param query of which rows come in its order, as of the moment in which the first is asked for
 */
export async function* pagesOf<Row extends object>(
  tx: Transaction,
  query: postgres.PendingQuery<postgres.Row[]>,
  rows: number,
): AsyncGenerator<Row[]> {
  cursors += 1;
  const cursor = tx(`pages_${cursors}`);
  await tx`declare ${cursor} no scroll cursor for ${query}`;
  for (;;) {
    const page = await tx<Row[]>`fetch forward ${tx.unsafe(String(rows))} from ${cursor}`;
    if (page.length > 0) yield [...page];
    if (page.length < rows) break;
  }
  await tx`close ${cursor}`;
}

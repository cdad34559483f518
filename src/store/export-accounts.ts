/** Who pays for whom, all that was ever said of it. */
import { type Page, TABLES } from "../core/export/tables.ts";
import type { Transaction } from "./connect.ts";
import { cellPages, cellsOf } from "./export-cells.ts";

export function accountPages(
  tx: Transaction,
  { log, below }: { log: string; below: bigint },
): AsyncIterable<Page> {
  return cellPages(
    tx,
    tx`
    select ${tx.unsafe(cellsOf(TABLES.account_map))}
    from accounts as row
    where log = ${log} and index < ${below}
    order by row.namespace_id nulls first, row.effective_from, row.index`,
  );
}

/** Closed months: their rows of each public view, written once, from entries (DESIGN §8). */
import { type ChargeTables, charges } from "./charges.ts";
import type { Transaction } from "./connect.ts";
import { columnsOf, countOf, SHOWN, type Shown } from "./recounts.ts";

const ROWS = Object.keys(SHOWN) as Shown[];

export type ClosedTable = "closed_months" | `closed_${Shown}`;
export const CLOSED_TABLES: readonly ClosedTable[] = [
  "closed_months",
  ...ROWS.map((name): ClosedTable => `closed_${name}`),
];

export interface ClosedMonth {
  log: string;
  month: string;
  /** The cut-off: no entry from there on is posted to the month. */
  size: bigint;
}

/**
 * Rows that stand already are left as they are.
 *
 * @param tables where the charges are read from
 * @param into the table that rows of a table go into
 */
export async function insertClosed(
  tx: Transaction,
  { log, month, size }: ClosedMonth,
  tables?: ChargeTables,
  into: (table: ClosedTable) => string = (table) => table,
): Promise<void> {
  await tx`
    insert into ${tx(into("closed_months"))} ${tx({ log, month, size })}
    on conflict do nothing`;
  for (const name of ROWS) {
    const source = tx`
      select *
      from (${charges(tx, log, { from: 0n, to: size }, tables)}) as charge
      where billing_month = ${month}`;
    await tx`
      insert into ${tx(into(`closed_${name}`))} (${tx.unsafe(columnsOf(SHOWN[name]).join(", "))})
      ${countOf(tx, SHOWN[name], source)}
      on conflict do nothing`;
  }
}

/** One table against what was derived of it, in a rebuild's transaction. */
import type { Transaction } from "../../store/connect.ts";
import { balance, type DerivedTable, replace } from "../../store/rebuilds.ts";

/**
 * What a table lacks and has too much; after writing, what could not be mended. `uncounted`: what it is counted
 * from is not right yet, so that nobody counted it, and both are `""`.
 */
export interface RebuiltTable {
  table: DerivedTable;
  missing: string;
  surplus: string;
  state: "equal" | "differs" | "written" | "refused" | "uncounted";
}

/** Of tables that were derived. */
export async function settle(
  tx: Transaction,
  tables: readonly DerivedTable[],
  write: boolean,
): Promise<RebuiltTable[]> {
  const settled: RebuiltTable[] = [];
  for (const table of tables) settled.push(await settleOne(tx, table, write));
  return settled;
}

export function isRight({ state }: RebuiltTable): boolean {
  return state === "equal" || state === "written";
}

async function settleOne(
  tx: Transaction,
  table: DerivedTable,
  write: boolean,
): Promise<RebuiltTable> {
  const before = await balance(tx, table);
  const equal = before.missing === 0n && before.surplus === 0n;
  const shown = { table, missing: String(before.missing), surplus: String(before.surplus) };
  if (equal || !write) return { ...shown, state: equal ? "equal" : "differs" };
  await replace(tx, table);
  const { missing, surplus } = await balance(tx, table);
  const mended = missing === 0n && surplus === 0n;
  return mended
    ? { ...shown, state: "written" }
    : { table, missing: String(missing), surplus: String(surplus), state: "refused" };
}

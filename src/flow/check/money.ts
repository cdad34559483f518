/** Whether what an entry says of money could be said, by the rows of the entries before it. */
import { assertLines } from "../../core/adjustment.ts";
import type { Entry } from "../../core/entry.ts";
import type { Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";
import { readStanding } from "../../store/adjustments.ts";
import type { Sql } from "../../store/connect.ts";
import { assertAccount } from "../money/account.ts";
import type { Misjudged } from "./event.ts";

/**
 * Those rows were compared with their entries already. What is left of a month is asked of all entries at
 * once, by `overdrawn` (store/adjustments.ts): by each it would read the log for each.
 */
export async function* moneyRules(
  entry: Entry,
  prefix: Prefix,
  sql: Sql,
): AsyncGenerator<Misjudged> {
  try {
    await assertMoney(entry, prefix, sql);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    yield ["an admissible entry", error.code];
  }
}

async function assertMoney(entry: Entry, prefix: Prefix, tx: Sql): Promise<void> {
  const { at, body, index: below, kind, log } = entry;
  if (kind === "account") await assertAccount({ tx, prefix, at, below }, body);
  if (kind !== "adjustment") return;
  assertLines(prefix, body, at, await readStanding(tx, log, body.lines, below));
}

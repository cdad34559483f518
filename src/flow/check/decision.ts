/** Whether an entry that two persons had to decide about is what they decided. */
import type { Entry } from "../../core/entry.ts";
import type { Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";
import type { Sql } from "../../store/connect.ts";
import { assertDecided } from "../control/decided.ts";
import type { Misjudged } from "./event.ts";

/** @param prefix of the entries before it. Signatures of approvals are the auditor's to verify. */
export async function* decisionRules(
  entry: Entry,
  prefix: Prefix,
  sql: Sql,
): AsyncGenerator<Misjudged> {
  try {
    await assertDecided(sql, prefix, entry);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    yield ["what two persons decided", error.code];
  }
}

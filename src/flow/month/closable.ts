/**
 * Whether a month could be cut off now, asked of a snapshot: under the head's lock, where it is asked again, all
 * that is missing would be looked for while nobody else can write.
 */
import { instantText } from "../../core/unit.ts";
import type { Sql } from "../../store/connect.ts";
import { readHeads } from "../../store/heads.ts";
import type { Clock } from "../clock.ts";
import { laterOf } from "../log/held.ts";
import { recall } from "../log/recall.ts";
import { snapshot } from "../usage/show.ts";
import { assertClosing, type NewClosing } from "./close.ts";
import { prefixAt } from "./standing.ts";

/** @throws Problem `months-in-order`, `month-not-ready`; of a log that there is not, nothing */
export async function assertClosable(
  { sql, quota, closeDelayDays }: { sql: Sql; quota: { clock: Clock }; closeDelayDays: bigint },
  log: string,
  { month }: NewClosing,
): Promise<void> {
  await snapshot(sql, async (tx) => {
    const head = (await readHeads(tx, [log])).get(log);
    if (head === undefined) return;
    const { controlIndex } = head;
    const prefix = await (controlIndex < 0n ? recall(tx, log) : prefixAt(tx, log, controlIndex));
    const at = laterOf(instantText(quota.clock.now()), head.at);
    await assertClosing({ tx, prefix, at, closeDelayDays }, { month });
  });
}

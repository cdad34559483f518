/** Legs of those who bill: what each consumer of the feed has of a closed month, and the table that finds it. */
import type { Transaction } from "../../store/connect.ts";
import { countUnmatchedAcks, readNewestAcks } from "../../store/feed-acks.ts";
import { decodedAs } from "../usage/show.ts";
import type { Leg } from "./leg.ts";

export interface Acknowledged {
  legs: Leg[];
  /** Consumers that have not come to the end of the month. */
  waiting: string[];
}

/** @param closed index of `month_closed`: from there on nothing more is to come of the month */
export async function acknowledgedLegs(
  tx: Transaction,
  { log, month }: { log: string; month: string },
  closed: bigint,
): Promise<Acknowledged> {
  const found: Acknowledged = { legs: [], waiting: [] };
  let differing = await countUnmatchedAcks(tx, log);
  for (const { bytes, ...kept } of await readNewestAcks(tx, log)) {
    const { consumer, months, up_to } = decodedAs("feed_ack", bytes).body;
    if (kept.consumer !== consumer || String(kept.up_to) !== up_to) differing += 1n;
    if (BigInt(up_to) <= closed) {
      found.waiting.push(`acknowledged/${consumer}: ${up_to} of ${closed + 1n} entries`);
      continue;
    }
    const own = months.find(({ billing_month }) => billing_month === month);
    const { compute_ms = "0.000000", events = "0" } = own ?? {};
    found.legs.push({
      leg: `acknowledged/${consumer}`,
      figures: { billable_compute_ms: compute_ms, events },
    });
  }
  if (found.legs.length + found.waiting.length === 0) found.waiting.push("acknowledged: by nobody");
  found.legs.push({ leg: "feed_acks", figures: { differing_rows: String(differing) } });
  return found;
}

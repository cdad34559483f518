/** What the log itself counts of its events, by billing month. */
import { parseSignedComputeMs } from "../../core/charge.ts";
import { countedIn, type Sum } from "../../core/feed/acknowledgement.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { sumFed } from "../../store/feed.ts";
import { readFurthestAck } from "../../store/feed-acks.ts";
import { decodedAs } from "../usage/show.ts";

/** Entries of one statement: it keeps nobody waiting for long. */
const PAGE = 100_000n;

/**
 * Of entries 0 … upTo−1. What an acknowledgement counted stands on the log: from the furthest of them on, only
 * what came since is looked at.
 *
 * @param below only those on entries 0 … below−1 are looked at
 */
export async function countFed(
  sql: Sql | Transaction,
  log: string,
  upTo: bigint,
  below?: bigint,
): Promise<Map<string, Sum>> {
  const furthest = await readFurthestAck(sql, log, upTo, below);
  const known = furthest && decodedAs("feed_ack", furthest.bytes).body;
  const sums = known === undefined ? new Map<string, Sum>() : countedIn(known);
  for (let from = BigInt(known?.up_to ?? 0n); from < upTo; from += PAGE) {
    const to = from + PAGE < upTo ? from + PAGE : upTo;
    for (const { billing_month, compute_ms, events } of await sumFed(sql, log, { from, to })) {
      const before = sums.get(billing_month);
      sums.set(billing_month, {
        events: events + (before?.events ?? 0n),
        computeMs: parseSignedComputeMs(compute_ms) + (before?.computeMs ?? 0n),
      });
    }
  }
  // A month that only the consumer had something of is not counted.
  return new Map([...sums].filter(([, { events }]) => events > 0n));
}

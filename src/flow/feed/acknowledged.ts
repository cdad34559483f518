/** What consumers of the feed have acknowledged: the third leg of reconciliation. */
import { differencesIn } from "../../core/feed/acknowledgement.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readNewestAcks } from "../../store/feed-acks.ts";
import { decodedAs } from "../usage/show.ts";

/** A consumer's newest acknowledgement: of entries 0 … up_to−1. */
export interface ShownAck {
  consumer: string;
  index: string;
  at: string;
  up_to: string;
  /** Billing months of which it has something else than the log. */
  differing: string[];
}

/** By the consumers' names. */
export async function readAcknowledged(sql: Sql | Transaction, log: string): Promise<ShownAck[]> {
  return (await readNewestAcks(sql, log)).map(({ bytes }) => {
    const { at, body, index } = decodedAs("feed_ack", bytes);
    const { consumer, months, up_to } = body;
    const differing = [...differencesIn(months).keys()];
    return { consumer, index: String(index), at, up_to, differing };
  });
}

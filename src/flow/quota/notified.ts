/** What a namespace was told, or is to be told, for its owner. */
import { QuotaEvent } from "../../core/quota/event.ts";
import type { Sql } from "../../store/connect.ts";
import { type KeptNotification, readNotifications } from "../../store/notifications.ts";

export interface Notified extends QuotaEvent {
  /** The `webhook-id` of every attempt. */
  id: string;
  number: string;
  state: KeptNotification["state"];
  attempts: number;
  settled_at?: string;
}

/** `next`, where there is more, is the `after` of the next page. */
export interface NotifiedPage {
  log: string;
  namespace_id: string;
  notifications: Notified[];
  next?: string;
}

const PAGE = 100;

/**
 * Of the last 35 days, oldest first, a page at a time. Of a namespace or log that nobody knows: none.
 *
 * @param sql as reader
 */
export async function showNotified(
  { sql }: { sql: Sql },
  { log, namespace, after = 0n }: { log: string; namespace: string; after?: bigint | undefined },
): Promise<NotifiedPage> {
  const kept = await readNotifications(sql, { log, namespace, after, limit: PAGE });
  const last = kept.at(-1);
  return {
    log,
    namespace_id: namespace,
    notifications: kept.map(shown),
    ...(last !== undefined && kept.length === PAGE && { next: String(last.number) }),
  };
}

function shown({ number, id, body, state, attempts, settled_at }: KeptNotification): Notified {
  const settled = settled_at === null ? {} : { settled_at: settled_at.toISOString() };
  const told = { id, number: String(number), state, attempts, ...settled };
  return { ...told, ...QuotaEvent.parse(JSON.parse(body)) };
}

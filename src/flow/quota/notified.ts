/** What a namespace was told, or is to be told, for its owner. */
import { Problem } from "../../core/problem.ts";
import { QuotaEvent } from "../../core/quota/event.ts";
import { readHead } from "../../store/heads.ts";
import { type KeptNotification, readNotifications } from "../../store/notifications.ts";
import { readAs, type Viewer } from "../../store/viewer.ts";
import type { Showing } from "../usage/show.ts";

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
 * Of the last 35 days, oldest first, a page at a time; of a namespace that nobody knows: none.
 *
 * @throws Problem `not-found` if there is no such log
 */
export async function showNotified(
  { sql }: Showing,
  {
    log,
    namespace,
    after = 0n,
    viewer,
  }: {
    log: string;
    namespace: string;
    after?: bigint | undefined;
    viewer?: Viewer | undefined;
  },
): Promise<NotifiedPage> {
  const found = await readAs(sql, viewer, async (reader) => {
    if ((await readHead(reader, log)) === undefined) throw new Problem("not-found");
    return await readNotifications(reader, { log, namespace, after, limit: PAGE + 1 });
  });
  const notifications = found.slice(0, PAGE).map(shown);
  const next = found.length > PAGE ? notifications.at(-1)?.number : undefined;
  return { log, namespace_id: namespace, notifications, ...(next !== undefined && { next }) };
}

function shown({ number, id, body, state, attempts, settled_at }: KeptNotification): Notified {
  const settled = settled_at === null ? {} : { settled_at: settled_at.toISOString() };
  const told = { id, number: String(number), state, attempts, ...settled };
  return { ...told, ...QuotaEvent.parse(JSON.parse(body)) };
}

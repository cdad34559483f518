/** Table `notifications`: what namespaces are told, and how far each of it came (an outbox). */
import { plainColumn, textColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

/** A notification by its place among those of its namespace: 1, 2, 3 … */
export interface NotificationKey {
  log: string;
  namespace: string;
  number: bigint;
}

export interface NewNotification extends Omit<NotificationKey, "log"> {
  id: string;
  body: string;
}

/** @param at epoch milliseconds */
export async function insertNotifications(
  tx: Transaction,
  log: string,
  at: number,
  told: readonly NewNotification[],
): Promise<void> {
  if (told.length === 0) return;
  await tx`
    insert into notifications (log, at, due_at, namespace_id, number, id, body)
    select ${log}, ${new Date(at)}, ${new Date(at)}, *
    from unnest(
      ${plainColumn(told.map(({ namespace }) => namespace))}::text::bigint[],
      ${plainColumn(told.map(({ number }) => number))}::text::bigint[],
      ${plainColumn(told.map(({ id }) => id))}::text::text[],
      ${textColumn(told.map(({ body }) => body))}::text::text[]
    )`;
}

export interface ClaimedNotification extends NotificationKey {
  id: string;
  body: string;
  /** With the one that the claim is for. */
  attempts: number;
}

/**
 * What is due, the longest waiting first, and of each namespace only what comes next: until `until`
 * nobody else sends it. Nothing while the receiver is to be left alone.
 *
 * @param claim.receiver SHA-256 of its URL
 */
export async function claimNotifications(
  sql: Sql,
  {
    receiver,
    now,
    until,
    limit,
  }: Record<"now" | "until" | "limit", number> & {
    receiver: Uint8Array;
  },
): Promise<ClaimedNotification[]> {
  return await sql<ClaimedNotification[]>`
    update notifications as claimed
    set due_at = ${new Date(until)}, attempts = attempts + 1
    from (
      select log, namespace_id, number
      from notifications as due
      where state = 'pending' and due_at <= ${new Date(now)}
        and not exists (
          select
          from notifications as earlier
          where earlier.log = due.log
            and earlier.namespace_id = due.namespace_id
            and earlier.number < due.number
            and earlier.state = 'pending'
        )
        and not exists (
          select
          from webhook_receivers
          where receiver = ${receiver} and webhook_receivers.due_at > ${new Date(now)}
        )
      order by due_at, log, namespace_id
      limit ${limit}
      for update skip locked
    ) as due
    where claimed.log = due.log
      and claimed.namespace_id = due.namespace_id
      and claimed.number = due.number
    returning
      claimed.log, claimed.namespace_id::text as namespace, claimed.number, id, body, attempts`;
}

/** Nothing more is done about it. */
export async function settleNotification(
  sql: Sql,
  { log, namespace, number }: NotificationKey,
  { state, now }: { state: "delivered" | "given_up"; now: number },
): Promise<void> {
  await sql`
    update notifications
    set state = ${state}, settled_at = ${new Date(now)}
    where log = ${log} and namespace_id = ${namespace}::text::bigint and number = ${number}
      and state = 'pending'`;
}

/** It is sent again then, unless somebody has claimed it meanwhile. */
export async function postponeNotification(
  sql: Sql,
  { log, namespace, number, attempts }: ClaimedNotification,
  until: number,
): Promise<void> {
  await sql`
    update notifications
    set due_at = ${new Date(until)}
    where log = ${log} and namespace_id = ${namespace}::text::bigint and number = ${number}
      and state = 'pending' and attempts = ${attempts}`;
}

const REMOVED_MAX = 10_000;

/** What is as old as that is given up, and what is as old as that is forgotten, a part at a time. */
export async function expireNotifications(
  sql: Sql,
  { now, givenUpMs, keptMs }: Record<"now" | "givenUpMs" | "keptMs", number>,
): Promise<void> {
  await sql`
    update notifications
    set state = 'given_up', settled_at = ${new Date(now)}
    where state = 'pending' and at <= ${new Date(now - givenUpMs)}`;
  await sql`
    delete from notifications
    where (log, namespace_id, number) in (
      select log, namespace_id, number
      from notifications
      where at <= ${new Date(now - keptMs)}
      order by at
      limit ${REMOVED_MAX}
    )`;
}

export interface KeptNotification {
  number: bigint;
  id: string;
  body: string;
  state: "pending" | "delivered" | "given_up";
  attempts: number;
  settled_at: Date | null;
}

/** Those of a namespace after `after`, in order. */
export async function readNotifications(
  sql: Sql | Transaction,
  {
    log,
    namespace,
    after,
    limit,
  }: Omit<NotificationKey, "number"> & {
    after: bigint;
    limit: number;
  },
): Promise<KeptNotification[]> {
  return await sql<KeptNotification[]>`
    select number, id, body, state, attempts, settled_at
    from notifications
    where log = ${log} and namespace_id = ${namespace}::text::bigint and number > ${after}
    order by number
    limit ${limit}`;
}

/** What waits to be sent, and since when the longest of it does. */
export async function readBacklog(sql: Sql): Promise<{ waiting: bigint; since: Date | null }> {
  const [row] = await sql<[{ waiting: bigint; since: Date | null }]>`
    select count(*) as waiting, min(at) as since
    from notifications
    where state = 'pending'`;
  return row;
}

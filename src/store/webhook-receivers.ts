/** Table `webhook_receivers`: who is left alone, and until when, by all processes. */
import type { Sql } from "./connect.ts";

/** @param receiver SHA-256 of its URL @param until epoch milliseconds */
export async function restReceiver(sql: Sql, receiver: Uint8Array, until: number): Promise<void> {
  await sql`
    insert into webhook_receivers as resting (receiver, due_at)
    values (${receiver}, ${new Date(until)})
    on conflict (receiver) do update
      set due_at = greatest(resting.due_at, excluded.due_at)`;
}

/** It said that it wants nothing more. */
export async function dismissReceiver(sql: Sql, receiver: Uint8Array): Promise<void> {
  await sql`
    insert into webhook_receivers (receiver, due_at)
    values (${receiver}, 'infinity')
    on conflict (receiver) do update
      set due_at = excluded.due_at`;
}

export async function isDismissed(sql: Sql, receiver: Uint8Array): Promise<boolean> {
  const rows = await sql`
    select
    from webhook_receivers
    where receiver = ${receiver} and due_at = 'infinity'`;
  return rows.length > 0;
}

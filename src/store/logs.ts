/** What logs there are: heads, seals and entry 0 side by side. */
import type { Sql, Transaction } from "./connect.ts";

export interface ListedLog {
  log: string;
  /** Entries 0 … size−1 are committed. */
  size: bigint;
  /** Entries 0 … sealed−1 are covered by an archived checkpoint. */
  sealed: bigint;
  /** Bytes of entry 0. */
  genesis: Uint8Array;
}

/** All of them, oldest first; or the one that is asked for. */
export async function listLogs(sql: Sql | Transaction, log?: string): Promise<ListedLog[]> {
  return await sql<ListedLog[]>`
    select h.log, h.size, coalesce(s.size, 0) as sealed, e.bytes as genesis
    from heads h
    join entries e
      on e.log = h.log and e.index = 0
    left join seals s
      on s.log = h.log
    ${log === undefined ? sql`` : sql`where h.log = ${log}`}
    order by e.at, h.log
  `;
}

export async function countLogs(sql: Sql): Promise<bigint> {
  const [row] = await sql<[{ logs: bigint }]>`select count(*) as logs from heads`;
  return row.logs;
}

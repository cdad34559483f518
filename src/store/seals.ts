/** Table `seals`: how far a log is sealed, and the right edge of its tree. */
import { GENESIS_PREV } from "../core/entry.ts";
import type { Hash } from "../core/hash.ts";
import { decodeEdge, type Edge, EMPTY_EDGE, encodeEdge } from "../core/tile.ts";
import type { Sql, Transaction } from "./connect.ts";

/** Entries 0 … size−1 are sealed; `leaf` is the last one's, or what index 0 names as `prev`. */
export interface Seal {
  size: bigint;
  leaf: Hash;
  edge: Edge;
}

export const EMPTY_SEAL: Seal = { size: 0n, leaf: GENESIS_PREV, edge: EMPTY_EDGE };

/** A log whose head is not where its seal is; `since`: of its oldest unsealed entry. */
export interface DirtyLog {
  log: string;
  entries: bigint;
  since: Date;
}

/** All of them by one query, the longest waiting first. */
export async function dirtyLogs(sql: Sql): Promise<DirtyLog[]> {
  return await sql<DirtyLog[]>`
    select
      heads.log,
      heads.size - coalesce(seals.size, 0) as entries,
      coalesce(entries.at, heads.at) as since
    from heads
    left join seals on seals.log = heads.log
    left join entries on entries.log = heads.log and entries.index = coalesce(seals.size, 0)
    where seals.size is distinct from heads.size
    order by since, heads.log`;
}

/** A row to lock, if there is such a log; committed on its own: an uncommitted one would keep another sealer waiting. */
export async function ensureSeal(sql: Sql, log: string): Promise<void> {
  await sql`
    insert into seals (log, size, leaf, edge)
    select log, ${EMPTY_SEAL.size}, ${EMPTY_SEAL.leaf}, ${encodeEdge(EMPTY_SEAL.edge)}
    from heads
    where log = ${log}
    on conflict do nothing`;
}

/** The archive may be slow: up to a minute between two statements of this transaction. */
export async function keepWaiting(tx: Transaction): Promise<void> {
  await tx`set local idle_in_transaction_session_timeout = '60s'`;
}

/** Another text means a restart, a failover or a restore since. */
export async function readServerStart(tx: Transaction): Promise<string> {
  const [row] = await tx<{ start: string }[]>`select pg_postmaster_start_time()::text as start`;
  return row?.start ?? "";
}

/** Undefined when somebody else is sealing the log: whoever comes second has nothing to do. */
export async function lockSeal(tx: Transaction, log: string): Promise<Seal | undefined> {
  return toSeal(
    await tx<Row[]>`
      select size, leaf, edge
      from seals
      where log = ${log}
      for update skip locked`,
  );
}

export async function readSeal(tx: Transaction, log: string): Promise<Seal> {
  const seal = toSeal(await tx<Row[]>`select size, leaf, edge from seals where log = ${log}`);
  return seal ?? EMPTY_SEAL;
}

/** @throws Error unless the seal stands at `from`, as it must under its lock */
export async function moveSeal(tx: Transaction, log: string, from: Seal, to: Seal): Promise<void> {
  const { count } = await tx`
    update seals
    set size = ${to.size}, leaf = ${to.leaf}, edge = ${encodeEdge(to.edge)}
    where log = ${log} and size = ${from.size}`;
  if (count !== 1) throw new Error("seals: moved by somebody else");
}

/** Up to this seal, or where it stands if that is further; its row is then locked as by `lockSeal`. */
export async function raiseSeal(tx: Transaction, log: string, to: Seal): Promise<void> {
  await tx`
    insert into seals as s (log, size, leaf, edge)
    values (${log}, ${to.size}, ${to.leaf}, ${encodeEdge(to.edge)})
    on conflict (log) do update
      set size = excluded.size, leaf = excluded.leaf, edge = excluded.edge
      where s.size < excluded.size`;
}

interface Row {
  size: bigint;
  leaf: Hash;
  edge: Uint8Array;
}

function toSeal([row]: readonly Row[]): Seal | undefined {
  if (row === undefined) return undefined;
  const edge = decodeEdge(row.edge);
  if (edge.size !== row.size) throw new Error("seals: the edge is of another size");
  return { ...row, edge };
}

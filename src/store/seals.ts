/** Table `seals`: how far a log is sealed, and the right edge of its tree. */
import { GENESIS_PREV } from "../core/entry.ts";
import type { Hash } from "../core/hash.ts";
import { decodeEdge, type Edge, EMPTY_EDGE, encodeEdge } from "../core/tile.ts";
import { bytesColumn, plainColumn } from "./columns.ts";
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

/** Rows to lock, of the logs that there are; committed on their own: an uncommitted one would keep another sealer waiting. */
export async function ensureSeals(sql: Sql, logs: readonly string[]): Promise<void> {
  await sql`
    insert into seals (log, size, leaf, edge)
    select log, ${EMPTY_SEAL.size}, ${EMPTY_SEAL.leaf}, ${encodeEdge(EMPTY_SEAL.edge)}
    from heads
    where log = any(${plainColumn(logs)}::text::text[])
      and not exists (select from seals where seals.log = heads.log)
    on conflict do nothing`;
}

/** A log's newest checkpoint, and when it was sealed. */
export interface SealedAt {
  log: string;
  size: bigint;
  at: Date;
}

/** Of all that are sealed, in the order of their names. */
export async function readNewestSeals(sql: Sql): Promise<SealedAt[]> {
  return await sql<SealedAt[]>`
    select log, size, sealed_at as at
    from seals
    join checkpoints using (log, size)
    order by log`;
}

/** The archive may be slow: up to a minute between two statements of this transaction. */
export async function keepWaiting(tx: Transaction): Promise<void> {
  await tx`set local idle_in_transaction_session_timeout = '60s'`;
}

/** Without those that somebody else is sealing: whoever comes second has nothing to do. */
export async function lockSeals(
  tx: Transaction,
  logs: readonly string[],
): Promise<Map<string, Seal>> {
  const rows = await tx<(Row & { log: string })[]>`
    select log, size, leaf, edge
    from seals
    where log = any(${plainColumn(logs)}::text::text[])
    for update skip locked`;
  return new Map(rows.map(({ log, ...row }) => [log, sealOf(row)]));
}

export async function readSeal(tx: Transaction, log: string): Promise<Seal> {
  const [row] = await tx<Row[]>`select size, leaf, edge from seals where log = ${log}`;
  return row === undefined ? EMPTY_SEAL : sealOf(row);
}

/** The seal of a log, as it is and as it is to be. */
export interface SealMove {
  log: string;
  from: Seal;
  to: Seal;
}

/** @throws Error unless each seal stands where it is said to, as it must under its lock */
export async function moveSeals(tx: Transaction, moves: readonly SealMove[]): Promise<void> {
  const { count } = await tx`
    update seals
    set size = moved.size, leaf = decode(moved.leaf, 'base64'), edge = decode(moved.edge, 'base64')
    from unnest(
      ${plainColumn(moves.map(({ log }) => log))}::text::text[],
      ${plainColumn(moves.map(({ from }) => from.size))}::text::bigint[],
      ${plainColumn(moves.map(({ to }) => to.size))}::text::bigint[],
      ${bytesColumn(moves.map(({ to }) => to.leaf))}::text::text[],
      ${bytesColumn(moves.map(({ to }) => encodeEdge(to.edge)))}::text::text[]
    ) as moved (log, before, size, leaf, edge)
    where seals.log = moved.log and seals.size = moved.before`;
  if (count !== moves.length) throw new Error("seals: moved by somebody else");
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

function sealOf({ size, leaf, edge: bytes }: Row): Seal {
  const edge = decodeEdge(bytes);
  if (edge.size !== size) throw new Error("seals: the edge is of another size");
  return { size, leaf, edge };
}

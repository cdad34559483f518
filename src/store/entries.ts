/** Table `entries`: the log itself. `flow/log/append` alone inserts (DESIGN §1, invariant 2). */
import type { Kind } from "../core/entry.ts";
import type { Hash } from "../core/hash.ts";
import type { UsageColumns } from "../core/typed.ts";
import { packed, packedText, plainColumn, startColumn, textColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

export interface StoredEntry {
  index: bigint;
  kind: string;
  at: string;
  prev: Hash;
  leaf: Hash;
  /** What was hashed, to the byte. */
  bytes: Uint8Array;
}

/** Whatever is committed: a pool, or the transaction that has locked the head. */
type Reader = Sql | Transaction;

export interface NewEntry extends Omit<StoredEntry, "kind" | "at"> {
  kind: Kind;
  /** Of a usage, and only of one. */
  usage?: UsageColumns;
}

/** In one statement. @param at of all of them; or of each, in their order */
export async function insertEntries(
  tx: Transaction,
  log: string,
  at: string | readonly string[],
  entries: readonly NewEntry[],
): Promise<void> {
  const ats = typeof at === "string" ? entries.map(() => at) : at;
  const usages = <K extends keyof UsageColumns>(column: K): (UsageColumns[K] | undefined)[] =>
    entries.map((entry) => entry.usage?.[column]);
  const bytes = entries.map((entry) => entry.bytes);
  await tx`
    with packed as materialized (
      select
        decode(${packed(entries.map((entry) => entry.prev))}, 'base64') as prevs,
        decode(${packed(entries.map((entry) => entry.leaf))}, 'base64') as leaves,
        convert_to(${packedText(bytes)}, 'UTF8') as bytes
    )
    insert into entries (
      log, index, kind, at, prev, leaf, bytes, tracking, job_id, project_id, namespace_id,
      runner_uuid, runner_id, machine_type, duration_ms, compute_ms, not_billable, usage_month,
      billing_month, finished_at
    )
    select
      ${log}, index, kind, at, substring(prevs from 32 * n::int - 31 for 32),
      substring(leaves from 32 * n::int - 31 for 32), substring(bytes from start for length),
      tracking, job_id, project_id, namespace_id, runner_uuid, runner_id, machine_type,
      duration_ms, compute_ms, not_billable, usage_month, billing_month, finished_at
    from packed, unnest(
      ${plainColumn(entries.map((entry) => entry.index))}::text::bigint[],
      ${plainColumn(entries.map((entry) => entry.kind))}::text::text[],
      ${plainColumn(ats)}::text::timestamptz[],
      ${startColumn(bytes)}::text::int[],
      ${plainColumn(bytes.map(({ length }) => String(length)))}::text::int[],
      ${plainColumn(usages("tracking"))}::text::text[],
      ${plainColumn(usages("job_id"))}::text::bigint[],
      ${plainColumn(usages("project_id"))}::text::bigint[],
      ${plainColumn(usages("namespace_id"))}::text::bigint[],
      ${textColumn(usages("runner_uuid"))}::text::text[],
      ${plainColumn(usages("runner_id"))}::text::bigint[],
      ${textColumn(usages("machine_type"))}::text::text[],
      ${plainColumn(usages("duration_ms"))}::text::bigint[],
      ${plainColumn(usages("compute_ms"))}::text::numeric[],
      ${textColumn(usages("not_billable"))}::text::text[],
      ${plainColumn(usages("usage_month"))}::text::date[],
      ${plainColumn(usages("billing_month"))}::text::date[],
      ${plainColumn(usages("finished_at"))}::text::timestamptz[]
    ) with ordinality as entry (
      index, kind, at, start, length, tracking, job_id, project_id, namespace_id, runner_uuid,
      runner_id, machine_type, duration_ms, compute_ms, not_billable, usage_month, billing_month,
      finished_at, n
    )
  `;
}

/** Entries from … to−1 in the order of the log; the caller bounds the page. */
export async function readEntries(
  sql: Reader,
  log: string,
  from: bigint,
  to: bigint,
): Promise<StoredEntry[]> {
  const rows = await sql<(Omit<StoredEntry, "at"> & { at: Date })[]>`
    select index, kind, at, prev, leaf, bytes
    from entries
    where log = ${log} and index >= ${from} and index < ${to}
    order by index
  `;
  return rows.map((row) => ({ ...row, at: row.at.toISOString() }));
}

/** @throws Error if there is no such entry */
export async function readEntry(sql: Reader, log: string, index: bigint): Promise<StoredEntry> {
  const [entry] = await readEntries(sql, log, index, index + 1n);
  if (entry === undefined) throw new Error("entries: one that stands is missing");
  return entry;
}

/** Bytes of those of the asked that stand, by index. */
export async function readBytes(
  sql: Reader,
  log: string,
  indices: readonly bigint[],
): Promise<Map<bigint, Uint8Array>> {
  const rows = await sql<{ index: bigint; bytes: Uint8Array }[]>`
    select index, bytes
    from entries
    where log = ${log} and index = any(${plainColumn(indices)}::text::bigint[])
  `;
  return new Map(rows.map(({ index, bytes }) => [index, bytes]));
}

/** Bytes of the entries that decide how reports are judged, after < index ≤ upTo, in order. */
export async function readControl(
  sql: Sql | Transaction,
  log: string,
  range: { after: bigint; upTo: bigint; limit: number },
): Promise<Uint8Array[]> {
  // The kinds stand in the text, not in a parameter: only so the planner sees that the partial index
  // entries_by_kind has them all. core's CONTROL_KINDS is the same list; a test compares.
  const rows = await sql<{ bytes: Uint8Array }[]>`
    select bytes
    from entries
    where log = ${log} and index > ${range.after} and index <= ${range.upTo}
      and kind in (
        'enrolment', 'key', 'key_rotated', 'key_revoked', 'rate_card', 'project_class', 'quota',
        'month_closing', 'month_closing_withdrawn', 'mode'
      )
    order by index
    limit ${range.limit}
  `;
  return rows.map((row) => row.bytes);
}

/** Bytes of all that a prefix keeps of entries, those after 0 and below an index, in order. */
export async function readPrefix(sql: Sql, log: string, below: bigint): Promise<Uint8Array[]> {
  // As in readControl; and what says who writes to the log, and under which keys it is signed.
  const rows = await sql<{ bytes: Uint8Array }[]>`
    select bytes
    from entries
    where log = ${log} and index > 0 and index < ${below}
      and kind in (
        'enrolment', 'key', 'key_rotated', 'key_revoked', 'rate_card', 'project_class', 'quota',
        'month_closing', 'month_closing_withdrawn', 'mode', 'service', 'log_key'
      )
    order by index
  `;
  return rows.map((row) => row.bytes);
}

/** Bytes of entry 0 of every log, oldest log first. */
export async function readGenesis(sql: Reader): Promise<{ log: string; bytes: Uint8Array }[]> {
  return await sql<{ log: string; bytes: Uint8Array }[]>`
    select e.log, e.bytes
    from heads h
    join entries e
      on e.log = h.log and e.index = 0
    order by e.at, e.log
  `;
}

/** The newest `service` entry. */
export async function readService(tx: Transaction, log: string): Promise<StoredEntry | undefined> {
  const [row] = await tx<{ index: bigint }[]>`
    select index
    from entries
    where log = ${log} and kind = 'service'
    order by index desc
    limit 1
  `;
  return row && (await readEntry(tx, log, row.index));
}

/** Index of the `key_rotated` entry that holds exactly this JWS, which JSON writes unescaped. */
export async function findRotation(
  tx: Transaction,
  log: string,
  jws: string,
): Promise<bigint | undefined> {
  const [row] = await tx<{ index: bigint }[]>`
    select index
    from entries
    where log = ${log} and kind = 'key_rotated'
      and position(convert_to(${`"${jws}"`}, 'UTF8') in bytes) > 0
  `;
  return row?.index;
}

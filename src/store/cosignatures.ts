/** Table `cosignatures`: what witnesses signed, written once, each after it is durable in the archive. */
import type { Hash } from "../core/hash.ts";
import type { Sql } from "./connect.ts";

export interface Cosignature {
  /** Of the witness's key. */
  name: string;
  /** 8 hex digits. */
  key_id: string;
  /** The signature line of the note, with its newline. */
  line: string;
}

/** A stored checkpoint; `note` has the log's own signatures alone. */
export interface CosignedCheckpoint {
  size: bigint;
  root: Hash;
  note: string;
  cosignatures: Cosignature[];
}

/** @param time seconds since the epoch, as the witness signed them */
export async function insertCosignature(
  sql: Sql,
  {
    log,
    size,
    time,
    name,
    key_id,
    line,
  }: Cosignature & { log: string; size: bigint; time: bigint },
): Promise<void> {
  await sql`
    with stored as (
      insert into cosignatures (log, size, name, key_id, line, cosigned_at)
      values (${log}, ${size}, ${name}, ${key_id}, ${line}, to_timestamp(${time}::bigint))
      on conflict do nothing
    )
    insert into submissions (log, key_id, cosigned_size)
    values (${log}, ${key_id}, ${size})
    on conflict (log, key_id) do update
      set cosigned_size = greatest(submissions.cosigned_size, excluded.cosigned_size)`;
}

/** The checkpoint of that size; without one, the newest. */
export async function readCosigned(
  sql: Sql,
  log: string,
  size?: bigint,
): Promise<CosignedCheckpoint | undefined> {
  const wanted =
    size === undefined
      ? sql`(select max(size) from checkpoints where log = ${log})`
      : sql`${size}::bigint`;
  return collected(
    await sql<Row[]>`
      select size, root, note, name, key_id, line
      from checkpoints
      left join cosignatures using (log, size)
      where log = ${log} and size = ${wanted}
      order by name, key_id`,
  )[0];
}

/** Sizes from `from` on and below `below`; at most `limit` of them, from that end. */
export interface CosignedRange {
  from: bigint;
  below?: bigint | undefined;
  first: "newest" | "oldest";
  limit: number;
}

/** Checkpoints, or only those that anyone has cosigned. */
export async function listCosigned(
  sql: Sql,
  log: string,
  { from, below, first, limit }: CosignedRange,
  which: "all" | "cosigned" = "cosigned",
): Promise<CosignedCheckpoint[]> {
  const order = first === "newest" ? sql`desc` : sql`asc`;
  return collected(
    await sql<Row[]>`
      select size, root, note, name, key_id, line
      from (
        select distinct size
        from ${which === "all" ? sql`checkpoints` : sql`cosignatures`}
        where log = ${log} and size >= ${from}
          ${below === undefined ? sql`` : sql`and size < ${below}`}
        order by size ${order}
        limit ${limit}
      ) as sizes
      join checkpoints using (size)
      left join cosignatures using (log, size)
      where log = ${log}
      order by size ${order}, name, key_id`,
  );
}

const PAGE = 100;

/** All of a log, a page at a time. */
export async function* readCosignatures(
  sql: Sql,
  log: string,
): AsyncGenerator<(Cosignature & { size: bigint })[]> {
  for (let after = { size: -1n, key_id: "" }; ; ) {
    const page = await sql<(Cosignature & { size: bigint })[]>`
      select size, name, key_id, line
      from cosignatures
      where log = ${log} and (size, key_id) > (${after.size}, ${after.key_id})
      order by size, key_id
      limit ${PAGE}`;
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    after = last;
  }
}

interface Row {
  size: bigint;
  root: Hash;
  note: string;
  name: string | null;
  key_id: string | null;
  line: string | null;
}

/** Rows of one checkpoint stand together. */
function collected(rows: readonly Row[]): CosignedCheckpoint[] {
  const found: CosignedCheckpoint[] = [];
  for (const { size, root, note, name, key_id, line } of rows) {
    let last = found.at(-1);
    if (last?.size !== size) {
      last = { size, root, note, cosignatures: [] };
      found.push(last);
    }
    if (name !== null && key_id !== null && line !== null) {
      last.cosignatures.push({ name, key_id, line });
    }
  }
  return found;
}

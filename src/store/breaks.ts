/** Tables `breaks`, `break_ends` and `coverages`: what reconciliation said on the log (migrations/0008). */
import { plainColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

/** A break without an end. Ids are absent where it is about none. */
interface OpenBreak {
  index: bigint;
  code: string;
  /** `YYYY-MM-DD`, the first of the usage month that it concerns. */
  month: string;
  job_id: bigint | null;
  namespace_id: bigint | null;
  runner_id: bigint | null;
  kid: string;
  tracking: string;
  difference_ms: bigint;
  usage: bigint | null;
}

/**
 * Those that stand open after entries 0 … upTo−1, in the order of the log.
 * @param throughMonth only those of this month and earlier ones
 */
export async function readOpenBreaks(
  tx: Sql | Transaction,
  log: string,
  upTo: bigint,
  throughMonth = "9999-12-01",
): Promise<OpenBreak[]> {
  return await tx<OpenBreak[]>`
    select index, code, month, job_id, namespace_id, runner_id, kid, tracking, difference_ms, usage
    from breaks as b
    where log = ${log} and index < ${upTo} and month <= ${throughMonth}
      and not exists (
        select
        from break_ends as e
        where e.log = b.log and e.break = b.index and e.index < ${upTo}
      )
    order by index
  `;
}

/** Undefined: the entry is no break. */
export async function readBreakState(
  tx: Transaction,
  log: string,
  index: bigint,
): Promise<"open" | "ended" | undefined> {
  const [row] = await tx<{ state: "open" | "ended" }[]>`
    select case when e.break is null then 'open' else 'ended' end as state
    from breaks as b
    left join break_ends as e on e.log = b.log and e.break = b.index
    where b.log = ${log} and b.index = ${index}
  `;
  return row?.state;
}

/** A break that was opened, and how it has ended. */
export type OpenedBreak = { index: bigint } & (
  | { end: null; outcome: null }
  | { end: bigint; outcome: string }
);

/** Those of these breaks that were opened already, ended or not, by fingerprint (base64). */
export async function readOpened(
  tx: Sql | Transaction,
  log: string,
  fingerprints: readonly string[],
): Promise<Map<string, OpenedBreak>> {
  // LATERAL and OFFSET 0, here and below: a look by the key for each, whatever the statistics say.
  const rows = await tx<(OpenedBreak & { fingerprint: string })[]>`
    select b.fingerprint, b.index, e.index as end, e.outcome
    from unnest(${plainColumn(fingerprints)}::text::text[]) as asked (fingerprint)
    cross join lateral (
      select fingerprint, index
      from breaks
      where log = ${log} and fingerprint = asked.fingerprint
      offset 0
    ) as b
    left join lateral (
      select index, outcome
      from break_ends
      where log = ${log} and break = b.index
      offset 0
    ) as e on true
  `;
  return new Map(rows.map(({ fingerprint, ...opened }) => [fingerprint, opened]));
}

/** Those of a key with one of these codes that have no end yet, in the order of the log. */
export async function readOpenOfKey(
  tx: Transaction,
  log: string,
  kid: string,
  codes: readonly string[],
): Promise<bigint[]> {
  const rows = await tx<{ index: bigint }[]>`
    select index
    from breaks as b
    where log = ${log} and kid = ${kid} and code = any(${plainColumn(codes)}::text::text[])
      and not exists (select from break_ends as e where e.log = b.log and e.break = b.index)
    order by index
  `;
  return rows.map(({ index }) => index);
}

/** Entries of those with this code that are about a key and have no end yet, in the order of the log. */
export async function readOpenOfKeys(
  sql: Sql | Transaction,
  log: string,
  code: string,
): Promise<{ index: bigint; bytes: Uint8Array }[]> {
  return await sql<{ index: bigint; bytes: Uint8Array }[]>`
    select e.index, e.bytes
    from breaks as b
    join entries as e on e.log = b.log and e.index = b.index
    where b.log = ${log} and b.kid <> '' and b.code = ${code}
      and not exists (select from break_ends as ended where ended.log = b.log and ended.break = b.index)
    order by e.index
  `;
}

/** A break's entry, with those that say who owns it now and how it ended. */
export interface ShownBreakRow {
  bytes: Uint8Array;
  owner: Uint8Array | null;
  end: Uint8Array | null;
}

export interface BreakSearch {
  /** Those below this index, newest first. */
  before: bigint;
  state: "open" | "ended" | "all";
  limit: number;
}

export async function readBreaks(
  tx: Sql | Transaction,
  log: string,
  { before, limit, state }: BreakSearch,
): Promise<ShownBreakRow[]> {
  // The break's number straight from the bytes, as in 0007_quota.sql: few entries are of that kind.
  return await tx<ShownBreakRow[]>`
    select
      e.bytes,
      (
        select bytes
        from entries as a
        where a.log = ${log} and a.kind = 'break_assigned'
          and substring(encode(a.bytes, 'escape') from '"break":"([0-9]{1,19})"') = b.index::text
        order by a.index desc
        limit 1
      ) as owner,
      (select bytes from entries as r where r.log = ${log} and r.index = d.index) as end
    from breaks as b
    join entries as e
      on e.log = b.log and e.index = b.index
    left join break_ends as d
      on d.log = b.log and d.break = b.index
    where b.log = ${log} and b.index < ${before}
      and (${state === "all"} or (d.index is null) = ${state === "open"})
    order by b.index desc
    limit ${limit}
  `;
}

/** Of a day's jobs, how many breaks say something of them, by runner and code. */
export interface BreakCount {
  runner: bigint;
  code: string;
  open: bigint;
  ended: bigint;
}

/** Breaks about jobs that ended in [from, to), as the platform has them or else as they were reported. */
export async function countJobBreaks(
  tx: Sql | Transaction,
  log: string,
  { from, to }: { from: string; to: string },
): Promise<BreakCount[]> {
  return await tx<BreakCount[]>`
    select
      b.runner_id as runner,
      b.code,
      count(*) filter (where d.index is null) as open,
      count(*) filter (where d.index is not null) as ended
    from breaks as b
    left join break_ends as d
      on d.log = b.log and d.break = b.index
    left join platform_jobs as p
      on p.log = b.log and p.job_id = b.job_id
    left join unseen_usages as u
      on u.log = b.log and u.job_id = b.job_id
    where b.log = ${log} and b.runner_id is not null and b.job_id is not null
      and coalesce(p.finished_at, u.finished_at) >= ${from}
      and coalesce(p.finished_at, u.finished_at) < ${to}
    group by 1, 2
    order by 1, 2
  `;
}

export async function isBreak(tx: Sql | Transaction, log: string, index: bigint): Promise<boolean> {
  const [found] = await tx`select from breaks where log = ${log} and index = ${index}`;
  return found !== undefined;
}

/** Which of these breaks have an end. */
export async function readEnded(
  tx: Sql | Transaction,
  log: string,
  breaks: readonly bigint[],
): Promise<Set<bigint>> {
  const rows = await tx<{ break: bigint }[]>`
    select e.break
    from unnest(${plainColumn(breaks)}::text::bigint[]) as asked (break)
    cross join lateral (
      select break
      from break_ends
      where log = ${log} and break = asked.break
      offset 0
    ) as e
  `;
  return new Set(rows.map((row) => row.break));
}

/**
 * Of each of these runners that is covered at all, the first span that its coverages make together: they may
 * touch and overlap in any order.
 * @param upTo as entries 0 … upTo−1 say
 */
export async function readCoverages(
  tx: Sql | Transaction,
  log: string,
  runners: readonly bigint[],
  upTo = 2n ** 63n - 1n,
): Promise<{ runner: bigint; from: string; to: string; last: bigint }[]> {
  const rows = await tx<{ runner: bigint; from: Date; to: Date; last: bigint }[]>`
    with pieces as (
      select
        runner_id,
        index,
        from_at,
        to_at,
        max(to_at) over (
          partition by runner_id
          order by from_at, index
          rows between unbounded preceding and 1 preceding
        ) as before
      from unnest(${plainColumn(runners)}::text::bigint[]) as asked (runner)
      cross join lateral (
        select runner_id, index, from_at, to_at
        from coverages
        where log = ${log} and runner_id = asked.runner and index < ${upTo}
        offset 0
      ) as own
    ), chained as (
      select *, bool_or(from_at > before) over (partition by runner_id order by from_at, index) as broken
      from pieces
    )
    select runner_id as runner, min(from_at) as "from", max(to_at) as "to", max(index) as last
    from chained
    where broken is not true
    group by runner_id
    order by runner_id
  `;
  return rows.map(({ from, to, ...row }) => {
    return { ...row, from: from.toISOString(), to: to.toISOString() };
  });
}

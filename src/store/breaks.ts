/** Tables `breaks`, `break_ends` and `coverages`: what reconciliation said on the log (migrations/0008). */
import { plainColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

/** A break without an end. Ids are absent where it is about none. */
export interface OpenBreak {
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

/** Which of these breaks were opened already, ended or not, by fingerprint (base64). */
export async function readFingerprints(
  tx: Sql | Transaction,
  log: string,
  fingerprints: readonly string[],
): Promise<Set<string>> {
  const rows = await tx<{ fingerprint: string }[]>`
    select fingerprint
    from breaks
    where log = ${log} and fingerprint = any(${plainColumn(fingerprints)}::text::text[])
  `;
  return new Set(rows.map(({ fingerprint }) => fingerprint));
}

/** Of these breaks, by fingerprint (base64), those that have no end yet. */
export async function readOpenOf(
  tx: Sql | Transaction,
  log: string,
  fingerprints: readonly string[],
): Promise<Map<string, bigint>> {
  const rows = await tx<{ fingerprint: string; index: bigint }[]>`
    select fingerprint, index
    from breaks as b
    where log = ${log} and fingerprint = any(${plainColumn(fingerprints)}::text::text[])
      and not exists (select from break_ends as e where e.log = b.log and e.break = b.index)
  `;
  return new Map(rows.map(({ fingerprint, index }) => [fingerprint, index]));
}

/** Which of these breaks have an end. */
export async function readEnded(
  tx: Sql | Transaction,
  log: string,
  breaks: readonly bigint[],
): Promise<Set<bigint>> {
  const rows = await tx<{ break: bigint }[]>`
    select break
    from break_ends
    where log = ${log} and break = any(${plainColumn(breaks)}::text::bigint[])
  `;
  return new Set(rows.map((row) => row.break));
}

/**
 * The instant up to which a runner's jobs are covered without a gap, from the first that is covered at all.
 * @param upTo as entries 0 … upTo−1 say
 */
export async function readCoverage(
  tx: Sql | Transaction,
  log: string,
  runner: bigint,
  upTo = 2n ** 63n - 1n,
): Promise<string | undefined> {
  const [covered] = await readCoverages(tx, log, [runner], upTo);
  return covered?.to;
}

/** As `readCoverage`, of each of these runners that is covered at all. */
export async function readCoverages(
  tx: Sql | Transaction,
  log: string,
  runners: readonly bigint[],
  upTo = 2n ** 63n - 1n,
): Promise<{ runner: bigint; to: string; last: bigint }[]> {
  const rows = await tx<{ runner: bigint; to: Date; last: bigint }[]>`
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
      from coverages
      where log = ${log} and index < ${upTo}
        and runner_id = any(${plainColumn(runners)}::text::bigint[])
    ), chained as (
      select *, bool_or(from_at > before) over (partition by runner_id order by from_at, index) as broken
      from pieces
    )
    select runner_id as runner, max(to_at) as "to", max(index) as last
    from chained
    where broken is not true
    group by runner_id
    order by runner_id
  `;
  return rows.map(({ to, ...row }) => ({ ...row, to: to.toISOString() }));
}

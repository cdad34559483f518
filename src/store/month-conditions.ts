/** What the preconditions of a cut-off are read from, as entries 0 … below−1 say (docs/months.md). */
import { joinPayer, type Payer } from "./accounts.ts";
import { plainColumn, textColumn } from "./columns.ts";
import type { Transaction } from "./connect.ts";
import { instant } from "./instant.ts";
import { after, joinSigned } from "./signed-members.ts";

/** Index of the first entry that was written at an instant or after it; `size` where there is none. */
export async function firstAt(
  tx: Transaction,
  log: string,
  instant: string,
  size: bigint,
): Promise<bigint> {
  let [low, high] = [0n, size];
  // A log's clock never runs backwards, and there is no index of it.
  while (low < high) {
    const middle = (low + high) / 2n;
    const [row] = await tx<{ before: boolean }[]>`
      select at < ${instant} as before from entries where log = ${log} and index = ${middle}`;
    if (row?.before === true) low = middle + 1n;
    else high = middle;
  }
  return low;
}

/** The newest attestations of a key are looked at: an older one that is delivered late tells less. */
const ATTESTATIONS_MAX = 8;

export interface AskedSigner {
  kid: string;
  /** As `headerSegment` has it. */
  signer: string;
}

export interface AttestedKey {
  kid: string;
  /** The highest counter that it says. */
  counter: bigint;
  /** `issued_at` of the newest that was both signed and written at `since` or later. */
  issued_at: string | null;
}

/** Of the keys that attested in entries 0 … below−1, what their newest attestations say. */
export async function readAttested(
  tx: Transaction,
  log: string,
  keys: readonly AskedSigner[],
  { since, below }: { since: string; below: bigint },
): Promise<AttestedKey[]> {
  return await tx<AttestedKey[]>`
    select
      kid,
      max(${after(tx, "signed", '"counter":"')}::bigint) as counter,
      (array_agg(issued_at order by index desc) filter (where at >= ${since} and issued_at >= ${since}))[1]
        as issued_at
    from unnest(
      ${plainColumn(keys.map(({ kid }) => kid))}::text::text[],
      ${plainColumn(keys.map(({ signer }) => signer))}::text::text[]
    ) as asked (kid, signer)
    cross join lateral (${newestAttestations(tx, log, tx`${below}`)}) as e
    ${joinSigned(tx)}
    cross join lateral (
      select ${after(tx, "signed", '"issued_at":"')} collate "C" as issued_at
    ) as said
    group by kid`;
}

/** Beside a row `asked` that has a `signer`. */
function newestAttestations(
  tx: Transaction,
  log: string,
  below: ReturnType<Transaction["unsafe"]>,
) {
  return tx`
    select index, at, bytes
    from entries
    where log = ${log} and kind = 'attestation' and entry_signer(bytes) = asked.signer
      and index < ${below}
    order by index desc
    limit ${ATTESTATIONS_MAX}`;
}

/** A key that has ended. */
export interface EndedKey extends AskedSigner {
  /** Index of the entry that ended it. */
  end: bigint;
  /** Its last counter by its own word; undefined: it was revoked before it gave any. */
  final: bigint | undefined;
}

/**
 * Those about which persons resolved a break after the end. Else those of which every counter up to the final one is
 * accounted for, but those that were known when persons resolved a break about them: of what came to be known later
 * nobody has decided anything. Without a final counter, what is known must have been known then.
 */
export async function readAccounted(
  tx: Transaction,
  log: string,
  keys: readonly EndedKey[],
  below: bigint,
): Promise<Set<string>> {
  if (keys.length === 0) return new Set();
  const rows = await tx<{ kid: string }[]>`
    select asked.kid
    from unnest(
      ${plainColumn(keys.map(({ kid }) => kid))}::text::text[],
      ${plainColumn(keys.map(({ signer }) => signer))}::text::text[],
      ${plainColumn(keys.map(({ end }) => String(end)))}::text::bigint[],
      ${plainColumn(keys.map(({ final }) => final))}::text::bigint[]
    ) as asked (kid, signer, ended, final)
    cross join lateral (
      select max(${known(tx, log, tx`d.index`)}) as counter, bool_or(d.index > ended) as decided
      from breaks as b
      join break_ends as d
        on d.log = b.log and d.break = b.index
      where b.log = ${log} and b.kid = asked.kid
        and b.code in ('counter-gap', 'missing-attestation')
        and d.outcome <> 'healed' and d.index < ${below}
    ) as excused
    where decided
      or final is null and excused.counter >= ${known(tx, log, tx`${below}`)}
      or final is not null and greatest(final - coalesce(excused.counter, 0), 0) = (
        select count(distinct counter)
        from reports as r
        where r.log = ${log} and r.kid = asked.kid
          and r.counter > coalesce(excused.counter, 0) and r.counter <= final
          and recorded < ${below} and code <> 'wrong-log'
      )`;
  return new Set(rows.map(({ kid }) => kid));
}

/** The highest counter of a key that entries 0 … below−1 have: of a report, or attested. Beside a row `asked`. */
function known(tx: Transaction, log: string, below: ReturnType<Transaction["unsafe"]>) {
  return tx`greatest(
    0,
    (
      select max(counter)
      from reports as r
      where r.log = ${log} and r.kid = asked.kid and recorded < ${below} and code <> 'wrong-log'
    ),
    (
      select max(${after(tx, "signed", '"counter":"')}::bigint)
      from (${newestAttestations(tx, log, below)}) as e
      ${joinSigned(tx)}
    )
  )`;
}

export interface AskedRunner {
  runner: string;
  /** From where to where there must be no gap. */
  since: string;
}

/** How far each runner is covered from its `since` on without a gap; absent: not even there. */
export async function readCovered(
  tx: Transaction,
  log: string,
  runners: readonly AskedRunner[],
  { until, below }: { until: string; below: bigint },
): Promise<Map<string, string>> {
  const rows = await tx<{ runner: string; furthest: string }[]>`
    with asked as (
      select *
      from unnest(
        ${plainColumn(runners.map(({ runner }) => runner))}::text::bigint[],
        ${textColumn(runners.map(({ since }) => since))}::text::timestamptz[]
      ) as asked (runner, since)
    ), pieces as (
      select
        runner,
        to_at,
        from_at > greatest(since, max(to_at) over before_it) as apart,
        row_number() over (partition by runner order by from_at, index) as place
      from asked
      join coverages
        on log = ${log} and runner_id = runner and index < ${below}
          and to_at > since and from_at < ${until}
      window before_it as (
        partition by runner
        order by from_at, index
        rows between unbounded preceding and 1 preceding
      )
    ), chained as (
      select *, bool_or(apart) over (partition by runner order by place) as broken
      from pieces
    ), reached as (
      select runner, max(to_at) as furthest
      from chained
      where not broken
      group by runner
    )
    select runner::text, ${instant(tx, "furthest")}
    from reached`;
  return new Map(rows.map(({ runner, furthest }) => [runner, furthest]));
}

export interface BillableNamespace extends Payer {
  namespace_id: string;
}

/**
 * Namespaces with billable usage posted to a month, in the order of their numbers, and the account of each
 * that is in force before `until`.
 */
export async function readBillable(
  tx: Transaction,
  log: string,
  month: string,
  { until, below }: { until: string; below: bigint },
): Promise<BillableNamespace[]> {
  return await tx<BillableNamespace[]>`
    select namespace_id::text, account_id, subscription_id
    from (
      select distinct namespace_id
      from (${posted(tx, log, below)}) as posted
      where billing_month = ${month} and not_billable = ''
    ) as asked
    ${joinPayer(tx, log, { until, below })}
    order by asked.namespace_id`;
}

/** The earliest month that usage is posted to. */
export async function readFirstPosted(
  tx: Transaction,
  log: string,
  below: bigint,
): Promise<string | undefined> {
  const [row] = await tx<{ month: string | null }[]>`
    select min(billing_month) as month from (${posted(tx, log, below)}) as posted`;
  return row?.month ?? undefined;
}

/** What is folded, and of entries below an index those that are not yet: to which month, of which namespace. */
function posted(tx: Transaction, log: string, below: bigint) {
  return tx`
    select namespace_id, billing_month, not_billable
    from usage_buckets
    where log = ${log} and jobs > 0
    union all
    select namespace_id, billing_month, not_billable
    from entries
    where log = ${log} and kind = 'usage' and index < ${below}
      and index >= coalesce((select size from watermarks where log = ${log}), 0)`;
}

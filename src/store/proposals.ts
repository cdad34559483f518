/** Tables `proposals` and `proposal_ends`, and which entry came of an approval (migrations/0008). */
import { plainColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

export const PROPOSAL_OUTCOMES = ["approved", "refused", "withdrawn", "expired"] as const;
export type ProposalOutcome = (typeof PROPOSAL_OUTCOMES)[number];

export interface ProposalState {
  index: bigint;
  expiresAt: Date;
  /** Absent while nothing has ended it. */
  outcome: ProposalOutcome | null;
  /** Of the entry that ended it. */
  end: bigint | null;
  /** Of the entry that was asked for. */
  entry: bigint | null;
}

type Reader = Sql | Transaction;

const states = (sql: Reader) => sql`
  select p.index, p.expires_at as "expiresAt", e.outcome, e.index as end, coalesce(u.index, n.index) as entry
  from proposals p
  left join proposal_ends e
    on e.log = p.log and e.proposal = p.index
  left join approval_uses u
    on u.log = p.log and u.approval = e.index and e.outcome = 'approved'
  left join entries n -- an enrolment names no approval: it stands directly behind it
    on n.log = p.log and n.index = e.index + 1 and e.outcome = 'approved' and p.action = 'enrolment'`;

export async function readProposal(
  sql: Reader,
  log: string,
  index: bigint,
): Promise<ProposalState | undefined> {
  const [state] = await sql<ProposalState[]>`
    ${states(sql)}
    where p.log = ${log} and p.index = ${index}`;
  return state;
}

/** Newest first, those below an index, a page at a time. Whatever is over by `now` is not open. */
export async function readProposals(
  sql: Reader,
  log: string,
  {
    state,
    below,
    now,
    limit,
  }: { state: ProposalOutcome | "open" | undefined; below: bigint; now: string; limit: number },
): Promise<ProposalState[]> {
  const outcome = sql`coalesce(
    e.outcome, case when p.expires_at <= ${now}::text::timestamptz then 'expired' else 'open' end
  )`;
  return await sql<ProposalState[]>`
    ${states(sql)}
    where p.log = ${log} and p.index < ${below}
      ${state === undefined ? sql`` : sql`and ${outcome} = ${state}`}
    order by p.index desc
    limit ${limit}`;
}

/** How many of a log nothing has ended yet. */
export async function countOpen(tx: Reader, log: string): Promise<bigint> {
  const [row] = await tx<{ open: bigint }[]>`
    select count(*) as open
    from proposals p
    where p.log = ${log}
      and not exists (
        select
        from proposal_ends e
        where e.log = p.log and e.proposal = p.index
      )`;
  return row?.open ?? 0n;
}

/** Of all logs but these those that nobody has decided about in time, those that ended first in front. */
export async function readOverdue(
  sql: Reader,
  { now, without, limit }: { now: string; without: readonly string[]; limit: number },
): Promise<{ log: string; index: bigint }[]> {
  return await sql<{ log: string; index: bigint }[]>`
    select p.log, p.index
    from proposals p
    where p.expires_at <= ${now}::text::timestamptz
      and p.log <> all(${plainColumn(without)}::text::text[])
      and not exists (
        select
        from proposal_ends e
        where e.log = p.log and e.proposal = p.index
      )
    order by p.expires_at
    limit ${limit}`;
}

/** The entry that stands for an approval. */
export async function readUse(
  tx: Reader,
  log: string,
  approval: bigint,
): Promise<bigint | undefined> {
  const [use] = await tx<{ index: bigint }[]>`
    select index
    from approval_uses
    where log = ${log} and approval = ${approval}`;
  return use?.index;
}

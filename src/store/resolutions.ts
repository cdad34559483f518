/** Holds and conflicts, with how they ended (tables `hold_ends` and `conflict_ends`). */
import type { Sql, Transaction } from "./connect.ts";
import type { RegisteredEntry } from "./registers.ts";

export type Resolved = "conflict" | "hold";

/** Above every index that an entry can have. */
const ANY_INDEX = 2n ** 63n - 1n;

/** Whether it was ended, by an entry before `below`. */
export async function hasEnded(
  sql: Sql | Transaction,
  log: string,
  kind: Resolved,
  index: bigint,
  below: bigint = ANY_INDEX,
): Promise<boolean> {
  const rows = await sql`
    select
    from ${sql(`${kind}_ends`)} as ended
    where log = ${log} and ended.${sql(kind)} = ${index} and index < ${below}`;
  return rows.length > 0;
}

/** Whether an adjustment of a usage stands between two entries. */
export async function isAdjusted(
  sql: Sql | Transaction,
  log: string,
  usage: bigint,
  { after, below = ANY_INDEX }: { after: bigint; below?: bigint | undefined },
): Promise<boolean> {
  const [row] = await sql<{ found: boolean }[]>`
    select exists (
      select
      from adjustments
      where log = ${log} and entry = ${usage} and index > ${after} and index < ${below}
    ) as found`;
  return row?.found === true;
}

/** An entry, and the bytes of the one that ended it. */
export interface ResolvedEntry extends RegisteredEntry {
  end: Uint8Array | null;
}

export type ResolutionState = "open" | "ended" | "all";

/** In the order of the log, those after an index, a page at a time. */
export async function readResolved(
  tx: Transaction,
  log: string,
  kind: Resolved,
  { after, limit, state }: { after: bigint; limit: number; state: ResolutionState },
): Promise<ResolvedEntry[]> {
  // The kinds stand in the text too: only so the planner sees that the partial index has them.
  return await tx<ResolvedEntry[]>`
    select e.index, e.leaf, e.bytes, resolution.bytes as end
    from entries as e
    left join ${tx(`${kind}_ends`)} as ended
      on ended.log = e.log and ended.${tx(kind)} = e.index
    left join entries as resolution
      on resolution.log = e.log and resolution.index = ended.index
    where e.log = ${log} and e.kind = ${kind} and e.index > ${after}
      and e.kind not in ('usage', 'disposition', 'attestation')
      and (${state} = 'all' or (ended.index is null) = (${state} = 'open'))
    order by e.index
    limit ${limit}
  `;
}

export interface ResolutionStanding {
  kind: Resolved;
  open: bigint;
  /** `at` of the oldest one's entry. */
  since: Date;
}

/** What stands open over all logs; a kind without any is absent. */
export async function readResolutionStanding(sql: Sql): Promise<ResolutionStanding[]> {
  return await sql<ResolutionStanding[]>`
    select e.kind, count(*) as open, min(e.at) as since
    from heads
    cross join lateral (
      select log, index, kind, at
      from entries
      where entries.log = heads.log and kind in ('conflict', 'hold')
        and kind not in ('usage', 'disposition', 'attestation')
    ) as e
    where not exists (select from hold_ends as h where h.log = e.log and h.hold = e.index)
      and not exists (select from conflict_ends as c where c.log = e.log and c.conflict = e.index)
    group by e.kind
    order by e.kind
  `;
}

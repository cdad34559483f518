/** Table `adjustments`: what was added to charges, and what of them is left. */
import type {
  AdjustedUsage,
  MonthFigures,
  Scope,
  Standing,
  StandingLine,
} from "../core/adjustment.ts";
import { scopeName } from "../core/adjustment.ts";
import { parseComputeMs, parseSignedComputeMs } from "../core/charge.ts";
import type { AdjustmentLine } from "../core/control.ts";
import { IntegerText } from "../core/unit.ts";
import { charges } from "./charges.ts";
import { plainColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";
import type { Positioned, Snapshot, Stream } from "./snapshots.ts";

type Reader = Sql | Transaction;

/** What the lines name, as of the entries before `below`. */
export async function readStanding(
  sql: Reader,
  log: string,
  lines: readonly Pick<AdjustmentLine, "entry" | "reverses">[],
  below: bigint = ANY_INDEX,
): Promise<Standing> {
  const entries = lines.flatMap(({ entry }) => (entry === "" ? [] : [entry]));
  const reversed = lines.flatMap(({ reverses }) => (isLineName(reverses) ? [reverses] : []));
  return {
    usages: await readUsages(sql, log, entries, below),
    lines: await readLines(sql, log, reversed, below),
    adjusted: await readAdjusted(sql, log, entries, below),
  };
}

/** Above every index that an entry can have. */
const ANY_INDEX = 2n ** 63n - 1n;

/** Written in the one way there is: what is not names nothing. */
function isLineName(text: string): boolean {
  const parts = text.split("/");
  return parts.length === 2 && parts.every((part) => IntegerText.safeParse(part).success);
}

async function readUsages(
  sql: Reader,
  log: string,
  entries: readonly string[],
  below: bigint,
): Promise<Map<string, AdjustedUsage>> {
  if (entries.length === 0) return new Map();
  const rows = await sql<
    (Omit<AdjustedUsage, "charged"> & { index: bigint; compute_ms: string })[]
  >`
    select
      index, namespace_id::text, project_id::text, usage_month, not_billable = '' as billable,
      compute_ms
    from entries
    where log = ${log} and index = any(${plainColumn(entries)}::text::bigint[])
      and index < ${below} and kind = 'usage'`;
  return new Map(
    rows.map(({ index, compute_ms, ...usage }) => {
      return [String(index), { ...usage, charged: parseComputeMs(compute_ms) }];
    }),
  );
}

async function readLines(
  sql: Reader,
  log: string,
  names: readonly string[],
  below: bigint,
): Promise<Map<string, StandingLine>> {
  if (names.length === 0) return new Map();
  const [indices, lines] = [0, 1].map((at) => names.map((name) => name.split("/")[at]));
  const rows = await sql<(Omit<StandingLine, "amount"> & { name: string; amount: string })[]>`
    select
      concat(line.index, '/', line.line) as name,
      coalesce(line.entry::text, '') as entry,
      line.namespace_id::text,
      coalesce(line.project_id::text, '') as project_id,
      line.usage_month,
      line.amount,
      coalesce(line.credit_run::text, '') as credit_run,
      exists (
        select
        from adjustments as reversal
        where reversal.log = line.log and reversal.reverses_index = line.index
          and reversal.reverses_line = line.line and reversal.index < ${below}
      ) as reversed
    from adjustments as line
    where line.log = ${log} and line.index < ${below}
      and (line.index, line.line) in (
        select *
        from unnest(
          ${plainColumn(indices ?? [])}::text::bigint[], ${plainColumn(lines ?? [])}::text::bigint[]
        )
      )`;
  return new Map(
    rows.map(({ name, amount, ...line }) => {
      return [name, { ...line, amount: parseSignedComputeMs(amount) }];
    }),
  );
}

async function readAdjusted(
  sql: Reader,
  log: string,
  entries: readonly string[],
  below: bigint,
): Promise<Map<string, bigint>> {
  if (entries.length === 0) return new Map();
  // One by one: in a table that has grown since it was analyzed, the planner would read all of the log's lines
  // for a list of entries, and compare each of them with each of the list.
  const rows = await sql<{ entry: string; amount: string }[]>`
    select asked.entry::text, own.amount
    from unnest(${plainColumn(entries)}::text::bigint[]) as asked (entry)
    cross join lateral (
      select sum(amount) as amount
      from adjustments
      where log = ${log} and entry = asked.entry and index < ${below}
    ) as own
    where own.amount is not null`;
  return new Map(rows.map(({ entry, amount }) => [entry, parseSignedComputeMs(amount)]));
}

/**
 * What was charged and adjusted for each month and project so far, by `scopeName`: from the views and what
 * they do not have yet, in one statement, so that no refresh comes between the two.
 */
export async function readMonthFigures(
  sql: Reader,
  log: string,
  scopes: readonly Scope[],
): Promise<Map<string, MonthFigures>> {
  const asked = [...new Map(scopes.map((scope) => [scopeName(scope), scope])).values()];
  const project = ({ project_id }: Scope) => (project_id === "" ? undefined : project_id);
  const rows = await sql<(Scope & { charged: string; adjusted: string })[]>`
    with asked as (
      select *
      from unnest(
        ${plainColumn(asked.map(({ namespace_id }) => namespace_id))}::text::bigint[],
        ${plainColumn(asked.map(project))}::text::bigint[],
        ${plainColumn(asked.map(({ usage_month }) => usage_month))}::text::date[]
      ) as asked (namespace_id, project_id, usage_month)
    ), folded as (
      select coalesce((select size from watermarks where log = ${log}), 0) as size
    ), tail as (
      select namespace_id, project_id, usage_month, compute_ms as charged, 0.000000 as adjusted
      from entries
      where log = ${log} and index >= (select size from folded)
        and kind = 'usage' and tracking = 'hosted' and not_billable = ''
      union all
      select namespace_id, project_id, usage_month, 0.000000, amount
      from adjustments
      where log = ${log} and index >= (select size from folded)
    ), parts as (
      select asked.*, view.charged, view.adjusted
      from asked
      cross join lateral (
        select
          billable_compute_ms - adjustment_compute_ms as charged,
          adjustment_compute_ms as adjusted
        from ci_project_monthly_usages as view
        where log = ${log} and tracking = 'hosted' and view.namespace_id = asked.namespace_id
          and view.usage_month = asked.usage_month
          and (asked.project_id is null or view.project_id = asked.project_id)
        offset 0
      ) as view
      union all
      select asked.*, tail.charged, tail.adjusted
      from asked
      join tail
        on tail.namespace_id = asked.namespace_id and tail.usage_month = asked.usage_month
          and (asked.project_id is null or tail.project_id = asked.project_id)
    )
    select
      namespace_id::text, coalesce(project_id::text, '') as project_id, usage_month,
      sum(charged) as charged, sum(adjusted) as adjusted
    from parts
    group by parts.namespace_id, parts.project_id, usage_month`;
  return new Map(
    rows.map(({ charged, adjusted, ...scope }) => {
      const figures = {
        charged: parseComputeMs(charged),
        adjusted: parseSignedComputeMs(adjusted),
      };
      return [scopeName(scope), figures];
    }),
  );
}

/** An adjustment that took away what was not there; `left` of a month, or of a project's. */
export interface Overdraft extends Positioned {
  left: string;
}

/**
 * Adjustments of what was never charged, and those after which less than nothing was left: over all entries
 * before each, in one pass over the log. Of namespaces and months that nobody adjusted nothing is kept.
 */
export async function overdrawn(snapshot: Snapshot, log: string): Promise<Stream<Overdraft>> {
  return await snapshot.stream<Overdraft>(
    "overdrawn",
    (sql) => sql`
      with moves as (
        select index, namespace_id, project_id, usage_month, compute_ms, adjustment_compute_ms
        from (${charges(sql, log, { from: 0n, to: ANY_INDEX })}) as charge
        join (select distinct namespace_id, usage_month from adjustments where log = ${log}) as adjusted
          using (namespace_id, usage_month)
        where not_billable = ''
      ), scoped as (
        select * from moves where project_id <> 0
        union all
        select index, namespace_id, null, usage_month, compute_ms, adjustment_compute_ms from moves
      ), running as (
        select
          index,
          adjustment_compute_ms,
          sum(compute_ms) over scope as charged,
          sum(compute_ms + adjustment_compute_ms) over scope as left_over
        from scoped
        window scope as (partition by namespace_id, usage_month, project_id order by index)
      )
      select index as position, min(left_over)::text as left
      from running
      where adjustment_compute_ms <> 0 and (charged = 0 or left_over < 0)
      group by index
      order by index`,
  );
}

/** A line about a usage. */
export interface UsageAdjustment {
  index: bigint;
  line: bigint;
  /** Six decimals, signed. */
  amount: string;
  billing_month: string;
}

/** All lines about a usage, in the order of the log. */
export async function readUsageAdjustments(
  sql: Reader,
  log: string,
  entry: bigint,
): Promise<UsageAdjustment[]> {
  return await sql<UsageAdjustment[]>`
    select index, line, amount, billing_month
    from adjustments
    where log = ${log} and entry = ${entry}
    order by index, line`;
}

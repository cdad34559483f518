/** What is posted to a billing month by project, machine type and day, with what it would cost undiscounted. */
import { joinPayer, type Payer } from "./accounts.ts";
import { plainColumn, textColumn } from "./columns.ts";
import type { Transaction } from "./connect.ts";
import { pagesOf } from "./pages.ts";

/** What a card counts a millisecond on a machine as: n/d. */
export interface MachineRate {
  /** Index of the card. */
  card: bigint;
  /** `*`: all that the card does not name. */
  machine_type: string;
  n: bigint;
  d: bigint;
}

/** Exact; amounts in 10⁻⁶ compute-milliseconds. `adjustment` and the figures of the whole are signed. */
export interface PortalLine extends Payer {
  namespace_id: string;
  usage_month: string;
  /** UTC day of `finished_at`; null: adjustments of a namespace's month. */
  day: string | null;
  project_id: string;
  /** `""`: as `day`. */
  machine_type: string;
  tracking: string;
  jobs: bigint;
  duration_ms: bigint;
  gross: bigint;
  charged: bigint;
  /** Of which is billable. */
  billable: bigint;
  adjustment: bigint;
  /** Net figures of all lines of the namespace and usage month. */
  whole: { billable: bigint; not_billable: bigint };
}

export interface PortalMonth {
  log: string;
  month: string;
  /** Entries 0 … below−1 count. */
  below: bigint;
  /** Accounts in force before this instant. */
  until: string;
  rates: readonly MachineRate[];
  /** Lines that are read at once; memory knows no more of them. */
  pageRows?: number | undefined;
}

const PAGE_ROWS = 1_000;
/** An entry begins with `at`, `billable`, `billing_month` and `card`, which are never longer. */
const CARD_BYTES = 128;

/**
 * In the order of account, subscription, namespace, usage month, day (none last), project, machine type and
 * tracking; texts by code points, none first, and numbers as such.
 *
 * @throws Error on a usage whose card has no rate for its machine
 */
export async function* readPortalLines(
  tx: Transaction,
  of: PortalMonth,
): AsyncGenerator<PortalLine[]> {
  const { below, log, pageRows = PAGE_ROWS, until } = of;
  const query = tx`
    select
      account_id,
      subscription_id,
      asked.namespace_id::text,
      usage_month,
      day,
      project_id::text,
      machine_type,
      tracking,
      jobs,
      duration_ms::text,
      rated,
      ${micro(tx, "gross")},
      ${micro(tx, "charged")},
      ${micro(tx, "billable")},
      ${micro(tx, "adjustment")},
      (sum(billable + adjustment) over whole * 1000000)::numeric(46, 0)::text as whole_billable,
      (sum(charged - billable) over whole * 1000000)::numeric(46, 0)::text as whole_not_billable
    from (
      select
        namespace_id,
        usage_month,
        day,
        project_id,
        machine_type,
        tracking,
        sum(jobs) as jobs,
        sum(duration_ms) as duration_ms,
        bool_and(gross is not null) as rated,
        sum(gross) as gross,
        sum(charged) as charged,
        sum(case when not_billable = '' then charged else 0 end) as billable,
        sum(adjustment) as adjustment
      from (${parts(tx, of)}) as part
      group by namespace_id, usage_month, day, project_id, machine_type, tracking
    ) as asked
    ${joinPayer(tx, log, { until, below })}
    window whole as (partition by asked.namespace_id, usage_month)
    order by
      account_id collate "C" nulls first, subscription_id collate "C" nulls first,
      asked.namespace_id, usage_month, day nulls last, asked.project_id,
      machine_type collate "C", tracking collate "C"
  `;
  for await (const page of pagesOf<Row>(tx, query, pageRows)) yield page.map(exact);
}

/** One row for each usage, its gross amount rounded as core/charge.ts rounds, and for each line of an adjustment. */
function parts(tx: Transaction, { below, log, month, rates }: PortalMonth) {
  const [cards, n, d] = [
    plainColumn(rates.map(({ card }) => card)),
    plainColumn(rates.map((rate) => rate.n)),
    plainColumn(rates.map((rate) => rate.d)),
  ];
  const machines = textColumn(rates.map(({ machine_type }) => machine_type));
  const rate = tx`
    unnest(
      ${cards}::text::bigint[], ${machines}::text::text[],
      ${n}::text::numeric[], ${d}::text::numeric[]
    )`;
  // OFFSET 0, here and below: what each takes from a row is taken once, and not wherever it is named.
  return tx`
    select
      namespace_id, usage_month, day, project_id, usage.machine_type, tracking, 1 as jobs, duration_ms,
      0.000001 * (
        floor + case
          when twice > divisor or (twice = divisor and mod(floor, 2) = 1) then 1
          else 0
        end
      ) as gross,
      compute_ms as charged, not_billable, 0.000000 as adjustment
    from (
      select
        namespace_id, usage_month, (finished_at at time zone 'UTC')::date as day, project_id,
        machine_type, tracking, duration_ms, compute_ms, not_billable,
        substring(
          encode(substring(bytes from 1 for ${CARD_BYTES}), 'escape') from '"card":"([0-9]+)"'
        )::bigint as card
      from entries
      where log = ${log} and index < ${below} and kind = 'usage' and billing_month = ${month}
      offset 0
    ) as usage
    left join ${rate} as own (card, machine_type, n, d)
      on own.card = usage.card and own.machine_type = usage.machine_type
    left join ${rate} as other (card, machine_type, n, d)
      on other.card = usage.card and other.machine_type = '*'
    cross join lateral (
      select
        duration_ms * coalesce(own.n, other.n) * 1000000 as dividend,
        coalesce(own.d, other.d) as divisor
      offset 0
    ) as product
    cross join lateral (select div(dividend, divisor) as floor offset 0) as quotient
    cross join lateral (select 2 * (dividend - floor * divisor) as twice offset 0) as remainder
    union all
    select
      line.namespace_id, line.usage_month, (usage.finished_at at time zone 'UTC')::date,
      coalesce(line.project_id, 0), coalesce(usage.machine_type, ''), 'hosted', 0, 0,
      0.000000, 0.000000, '', line.amount
    from adjustments as line
    left join entries as usage
      on usage.log = line.log and usage.index = line.entry
    where line.log = ${log} and line.index < ${below} and line.billing_month = ${month}`;
}

function micro(tx: Transaction, column: string) {
  return tx`(${tx(column)} * 1000000)::numeric(46, 0)::text as ${tx(column)}`;
}

type Exact = "duration_ms" | "gross" | "charged" | "billable" | "adjustment";
type Row = Omit<PortalLine, Exact | "whole"> &
  Record<Exact | "whole_billable" | "whole_not_billable", string> & { rated: boolean };

function exact({ rated, whole_billable, whole_not_billable, ...row }: Row): PortalLine {
  if (!rated) throw new Error("portal: a usage whose card has no rate for its machine");
  return {
    ...row,
    duration_ms: BigInt(row.duration_ms),
    gross: BigInt(row.gross),
    charged: BigInt(row.charged),
    billable: BigInt(row.billable),
    adjustment: BigInt(row.adjustment),
    whole: { billable: BigInt(whole_billable), not_billable: BigInt(whole_not_billable) },
  };
}

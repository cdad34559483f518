/**
 * What the tables of financial control hold because of one entry (migrations/0008): append writes it in
 * the entry's transaction, `check` compares with it, `rebuild` writes what is missing.
 */
import type { Entry, EntryOf } from "./entry.ts";

/** By the columns' names, beside `log` and `index` (that of the entry), which every table has. */
export const BESIDE = {
  proposals: { action: "text", person: "text", expires_at: "timestamptz" },
  proposal_ends: { proposal: "bigint", outcome: "text", person: "text" },
  approval_uses: { approval: "bigint" },
  adjustments: {
    line: "bigint",
    namespace_id: "bigint",
    project_id: "bigint",
    usage_month: "date",
    billing_month: "date",
    amount: "numeric",
    entry: "bigint",
    reverses_index: "bigint",
    reverses_line: "bigint",
    credit_run: "bigint",
  },
  credit_runs: { form: "text", lines: "bigint", total: "numeric", reverses: "bigint" },
  accounts: {
    namespace_id: "bigint",
    effective_from: "timestamptz",
    account_id: "text",
    subscription_id: "text",
    source: "text",
    source_version: "bigint",
  },
  hold_ends: { hold: "bigint", outcome: "text" },
  conflict_ends: { conflict: "bigint", outcome: "text" },
  breaks: {
    fingerprint: "text",
    code: "text",
    month: "date",
    job_id: "bigint",
    namespace_id: "bigint",
    runner_id: "bigint",
    kid: "text",
    tracking: "text",
    difference_ms: "bigint",
    usage: "bigint",
  },
  break_ends: { break: "bigint", outcome: "text" },
  coverages: {
    runner_id: "bigint",
    from_at: "timestamptz",
    to_at: "timestamptz",
    jobs: "bigint",
    source: "text",
  },
  month_ends: { month: "date", closing: "bigint" },
  feed_acks: { consumer: "text", up_to: "bigint" },
  portal_breaks: { consumer: "text", month: "date" },
} as const satisfies Record<string, Readonly<Record<string, ColumnType>>>;

export type ColumnType = "text" | "bigint" | "date" | "timestamptz" | "numeric";
export type BesideTable = keyof typeof BESIDE;
export const BESIDE_TABLES = Object.keys(BESIDE) as BesideTable[];

type Columns<T extends BesideTable> = Readonly<
  Record<"index" | keyof (typeof BESIDE)[T], string | null>
>;
/** A row as texts: integers and decimals in full, instants as `InstantText`, months as `MonthText`. */
export type BesideRow = {
  [T in BesideTable]: { readonly table: T; readonly row: Columns<T> };
}[BesideTable];

/** @param ack of a `portal-difference`: the newest acknowledgement before it, which says whose it is */
export function rowsBeside(entry: Entry, ack?: EntryOf<"feed_ack">): BesideRow[] {
  const rows = ack !== undefined && isOfPortal(entry) ? ofPortal(entry, ack) : own(entry);
  const index = String(entry.index);
  const approval = "approval" in entry.body ? entry.body.approval : "";
  if (approval === "" || isPartOfRun(entry)) return rows;
  return [...rows, { table: "approval_uses", row: { index, approval } }];
}

/** Lines and packs of a credit run come under the run's own approval, which the run has used. */
export function isPartOfRun(entry: Entry): boolean {
  if (entry.kind === "adjustment") return entry.body.credit_run !== "";
  return entry.kind === "pack" && entry.body.source === CREDIT_RUN_SOURCE;
}

/** `source` of packs that a credit run gives; their `pack_id` is `<index of the run>/<namespace>`. */
export const CREDIT_RUN_SOURCE = "minutebook/credit_run";

function own(entry: Entry): BesideRow[] {
  const index = String(entry.index);
  switch (entry.kind) {
    case "proposal": {
      const { action, by: person, expires_at } = entry.body;
      return [{ table: "proposals", row: { index, action, person, expires_at } }];
    }
    case "approval":
      return [ended(entry, "approved")];
    case "proposal_ended":
      return [ended(entry, entry.body.outcome)];
    case "adjustment":
      return adjustments(entry);
    case "credit_run": {
      const { form, lines, reverses, total } = entry.body;
      const row = { index, form, lines, total, reverses: orNull(reverses) };
      return [{ table: "credit_runs", row }];
    }
    case "account": {
      const { account_id, effective_from, source, source_version, subscription_id } = entry.body;
      const named = { namespace_id: orNull(entry.body.namespace_id), account_id, subscription_id };
      const row = { index, ...named, effective_from, source, source_version };
      return [{ table: "accounts", row }];
    }
    case "hold_resolved": {
      const { hold, outcome } = entry.body;
      return [{ table: "hold_ends", row: { index, hold, outcome } }];
    }
    case "conflict_resolved": {
      const { conflict, outcome } = entry.body;
      return [{ table: "conflict_ends", row: { index, conflict, outcome } }];
    }
    case "break":
      return [broken(entry)];
    case "break_resolved": {
      const { outcome } = entry.body;
      return [{ table: "break_ends", row: { index, break: entry.body.break, outcome } }];
    }
    case "coverage": {
      const { from: from_at, jobs, runner_id, source, to: to_at } = entry.body;
      return [{ table: "coverages", row: { index, runner_id, from_at, to_at, jobs, source } }];
    }
    case "feed_ack": {
      const { consumer, up_to } = entry.body;
      return [{ table: "feed_acks", row: { index, consumer, up_to } }];
    }
    case "month_closed": {
      const { closing, month } = entry.body;
      return [{ table: "month_ends", row: { index, month, closing } }];
    }
    default:
      return [];
  }
}

function ended(
  { body, index }: EntryOf<"approval" | "proposal_ended">,
  outcome: string,
): BesideRow {
  const { by: person, proposal } = body;
  return { table: "proposal_ends", row: { index: String(index), proposal, outcome, person } };
}

function adjustments({ body, index }: EntryOf<"adjustment">): BesideRow[] {
  const { billing_month, credit_run } = body;
  return body.lines.map((line, at) => {
    const [reversesIndex = "", reversesLine = ""] = line.reverses.split("/");
    const row = {
      index: String(index),
      line: String(at),
      namespace_id: line.namespace_id,
      project_id: orNull(line.project_id),
      usage_month: line.usage_month,
      billing_month,
      amount: line.amount,
      entry: orNull(line.entry),
      reverses_index: orNull(reversesIndex),
      reverses_line: orNull(reversesLine),
      credit_run: orNull(credit_run),
    };
    return { table: "adjustments", row };
  });
}

function broken({ body, index }: EntryOf<"break">): BesideRow {
  const { code, difference_ms, fingerprint, kid, month, tracking } = body;
  const row = {
    index: String(index),
    ...{ fingerprint, code, month, kid, tracking, difference_ms },
    job_id: orNull(body.job_id),
    namespace_id: orNull(body.namespace_id),
    runner_id: orNull(body.runner_id),
    usage: orNull(body.usage),
  };
  return { table: "breaks", row };
}

/** Opened by what a consumer of the feed acknowledged (docs/feed.md). */
export function isOfPortal(entry: Entry): entry is EntryOf<"break"> {
  return entry.kind === "break" && entry.body.code === "portal-difference";
}

function ofPortal(entry: EntryOf<"break">, { body: { consumer } }: EntryOf<"feed_ack">) {
  const row = { index: String(entry.index), consumer, month: entry.body.month };
  return [broken(entry), { table: "portal_breaks" as const, row }];
}

function orNull(text: string): string | null {
  return text === "" ? null : text;
}

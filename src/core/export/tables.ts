/**
 * Files for finance: what each one's columns are (docs/exports.md). Cells are texts: integers and decimals in
 * full, instants RFC 3339 UTC with milliseconds, days `YYYY-MM-DD`, a month as its first day.
 */

/** A `decimal` has six places where its column says no other number, and a `-` where it is below zero. */
export type ColumnType = "boolean" | "day" | "decimal" | "instant" | "integer" | "json" | "text";

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly places?: number;
  /** An empty text is nothing too: a CSV file cannot tell them apart. */
  readonly nullable?: true;
  /** In the order of rows nothing is behind all else; without this it is before. */
  readonly nothingLast?: true;
  /** Its sum over all rows is a control total of the manifest. */
  readonly summed?: true;
}

export type Cell = string | null;
export type Row = readonly Cell[];
/** Some rows at once, as many as memory does not mind. */
export type Page = readonly Row[];

export const EXPORT_NAMES = [
  "account_map",
  "allocation",
  "entries",
  "focus",
  "monthly_hosted_runner",
  "monthly_namespace",
  "monthly_project",
  "pack_rollforward",
  "portal",
] as const;
export type ExportName = (typeof EXPORT_NAMES)[number];

export const FORMATS = ["csv", "ndjson", "parquet"] as const;
export type Format = (typeof FORMATS)[number];

/** All but `focus`, whose columns are a version's of the specification. */
export type TableName = Exclude<ExportName, "focus">;

const PAYER = [text("account_id"), text("subscription_id")].map(orNothing);
const FIGURES = [
  ...[counted("jobs"), counted("duration_ms"), amount("gross_compute_ms")],
  ...[amount("adjustment_compute_ms"), amount("net_compute_ms"), amount("billable_compute_ms")],
  integer("last_index"),
];

export const TABLES: Readonly<Record<TableName, readonly Column[]>> = {
  /** One row for each entry, or, with `line`, for each line of an adjustment: indices have no gap. */
  entries: [
    integer("index"),
    orNothing(integer("line")),
    text("kind"),
    { name: "at", type: "instant" },
    text("leaf"),
    ...[
      text("tracking"),
      integer("job_id"),
      integer("project_id"),
      integer("namespace_id"),
      integer("runner_id"),
      text("runner_uuid"),
      text("machine_type"),
      { name: "finished_at", type: "instant" } as const,
      counted("duration_ms"),
      amount("compute_ms"),
      amount("adjustment_compute_ms"),
      text("not_billable"),
      day("usage_month"),
      day("billing_month"),
    ].map(orNothing),
  ],
  /** As GitLab's `ci_namespace_monthly_usages`, `date` being the billing month; then ours. */
  monthly_namespace: [
    integer("namespace_id"),
    day("date"),
    { name: "amount_used", type: "decimal", places: 2 },
    integer("shared_runners_duration"),
    text("tracking"),
    day("usage_month"),
    ...FIGURES,
  ],
  monthly_project: [
    integer("project_id"),
    day("date"),
    { name: "amount_used", type: "decimal", places: 2 },
    integer("shared_runners_duration"),
    text("tracking"),
    integer("namespace_id"),
    day("usage_month"),
    ...FIGURES,
  ],
  monthly_hosted_runner: [
    integer("runner_id"),
    integer("runner_duration_seconds"),
    integer("project_id"),
    integer("root_namespace_id"),
    day("billing_month"),
    { name: "compute_minutes_used", type: "decimal", places: 4 },
    day("usage_month"),
    ...FIGURES,
  ],
  /**
   * What each account pays for. gross − discount + adjustment = net = billable + not billable, and
   * billable = included + pack + overage + absorbed, exactly, in each row.
   */
  portal: [
    ...PAYER,
    integer("namespace_id"),
    integer("project_id"),
    orNothing(text("machine_type")),
    text("tracking"),
    day("usage_month"),
    { ...orNothing(day("day")), nothingLast: true },
    counted("jobs"),
    counted("duration_ms"),
    ...[
      ...["gross", "discount", "adjustment", "net", "billable", "not_billable"],
      ...["included", "pack", "overage", "absorbed"],
    ].map((part) => amount(`${part}_compute_ms`)),
  ],
  allocation: [
    integer("namespace_id"),
    day("usage_month"),
    ...PAYER,
    ...["usage", "included", "drawn", "overage", "absorbed", "not_billable"].map((part) =>
      amount(`${part}_compute_ms`),
    ),
    { name: "packs", type: "json" },
  ],
  pack_rollforward: [
    integer("namespace_id"),
    integer("pack"),
    text("pack_id"),
    day("purchased_in"),
    day("expires_in"),
    ...["opening", "bought", "drawn", "expired", "refunded", "closing"].map((part) =>
      amount(`${part}_compute_ms`),
    ),
  ],
  /** Nothing as `namespace_id`: all of the instance that have no account of their own. */
  account_map: [
    orNothing(integer("namespace_id")),
    { name: "effective_from", type: "instant" },
    text("account_id"),
    orNothing(text("subscription_id")),
    orNothing(text("source")),
    integer("source_version"),
    integer("index"),
  ],
};

/**
 * Rows are in the order of these columns: numbers as numbers, texts by code points, and what is nothing before
 * all else, save for `day`, where it comes last. No two rows are the same in them.
 */
export const ORDER: Readonly<Record<TableName, readonly string[]>> = {
  entries: ["index", "line"],
  monthly_namespace: ["date", "tracking", "namespace_id", "usage_month"],
  monthly_project: ["date", "tracking", "namespace_id", "project_id", "usage_month"],
  monthly_hosted_runner: [
    ...["billing_month", "runner_id", "root_namespace_id", "project_id", "usage_month"],
  ],
  portal: [
    ...["account_id", "subscription_id", "namespace_id", "usage_month", "day"],
    ...["project_id", "machine_type", "tracking"],
  ],
  allocation: ["namespace_id", "usage_month"],
  pack_rollforward: ["namespace_id", "pack"],
  account_map: ["namespace_id", "effective_from", "index"],
};

/** How many digits stand behind the point of a number. */
export function placesOf({ places = 6, type }: Column): number {
  return type === "decimal" ? places : 0;
}

function text(name: string): Column {
  return { name, type: "text" };
}

function integer(name: string): Column {
  return { name, type: "integer" };
}

function day(name: string): Column {
  return { name, type: "day" };
}

function counted(name: string): Column {
  return { name, type: "integer", summed: true };
}

function amount(name: string): Column {
  return { name, type: "decimal", summed: true };
}

function orNothing(column: Column): Column {
  return { ...column, nullable: true };
}

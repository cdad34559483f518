/** Figures taken from the service, as `GET /v1/usage` answers, held against what the entries give. */
import type { Findings, OpenCode } from "../finding.ts";
import { micro } from "./record.ts";

/** One usage entry's part in every sum. Amounts in 10⁻⁶ compute-milliseconds. */
export interface Charge {
  index: bigint;
  keys: Readonly<Record<UsageKey, string>>;
  /** UTC, of the build's end. */
  day: string;
  duration: bigint;
  /** At the machine's own factor: before a class, or a reason that is not billable, made it less. */
  gross: bigint;
  compute: bigint;
  billable: boolean;
}

export const USAGE_KEYS = [
  "billing_month",
  "usage_month",
  "tracking",
  "namespace",
  "project",
  "runner",
  "machine_type",
] as const;
export type UsageKey = (typeof USAGE_KEYS)[number];

/** By which value of a charge's key the query's members choose it. */
const FILTERS = {
  from: ({ billing_month }, from: string) => billing_month >= from,
  to: ({ billing_month }, to: string) => billing_month < to,
  tracking: ({ tracking }, value: string) => tracking === value,
  project: ({ project }, value: string) => project === value,
  runner: ({ runner }, value: string) => runner === value,
  machine_type: ({ machine_type }, value: string) => machine_type === value,
} as const satisfies Record<string, (keys: Charge["keys"], value: string) => boolean>;

export interface UsageFile {
  name: string;
  log: string;
  asOf: bigint;
  /** Whether a charge is among those that its query asks for: of the whole log, if it asks for no less. */
  covers(keys: Charge["keys"]): boolean;
  /** The keys that its rows are grouped by. */
  group: readonly UsageKey[];
  /** What it says, by its key. */
  rows: ReadonlyMap<string, Said>;
  totals: Said;
}

/** `compute` as charged; what adjustments add is in `billable`, and in what is shown, as well. */
interface Sums {
  jobs: bigint;
  duration: bigint;
  compute: bigint;
  adjustment: bigint;
  billable: bigint;
}

const NOTHING: Readonly<Sums> = {
  jobs: 0n,
  duration: 0n,
  compute: 0n,
  adjustment: 0n,
  billable: 0n,
};

export interface Said extends Sums {
  /** Charged and adjusted. */
  net: bigint;
  /** As shown: rounded from the exact sums, so they are compared too. */
  compute_minutes: string;
  amount_used: string;
  shared_runners_duration: string;
}

const INTEGER = /^(?:0|[1-9][0-9]{0,38})$/;
const AMOUNT = /^-?(?:0|[1-9][0-9]{0,39})\.[0-9]{6}$/;
const MICRO_PER_MINUTE = 60_000_000_000n;

/** Undefined unless the text is an answer of `GET /v1/usage` in its JSON form. */
export function readUsageFile(name: string, text: string): UsageFile | undefined {
  const answer = record(parse(text));
  const { log, as_of, rows, totals } = answer ?? {};
  const said = readSaid(totals);
  const covers = readQuery(answer?.["query"]);
  const group = readGroup(answer?.["group"]);
  if (typeof log !== "string" || !isInteger(as_of) || !Array.isArray(rows)) return undefined;
  if (said === undefined || covers === undefined || group === undefined) return undefined;
  const byKey = new Map<string, Said>();
  for (const row of rows) {
    const figures = readSaid(row);
    const values = group.map((key) => record(row)?.[key]);
    if (figures === undefined || !values.every((value) => typeof value === "string")) {
      return undefined;
    }
    byKey.set(JSON.stringify(values), figures);
  }
  if (byKey.size !== rows.length) return undefined; // two rows of one key: no answer of ours
  return { name, log, asOf: BigInt(as_of), covers, group, rows: byKey, totals: said };
}

/** Takes in usage entries one by one, and keeps no more than the file has rows. */
export class UsageCheck {
  readonly #file: UsageFile;
  readonly #sums = new Map<string, Sums>();
  #missing: { count: bigint; first: bigint; key: string } | undefined;

  constructor(file: UsageFile) {
    this.#file = file;
  }

  take({ index, keys, duration, compute, billable }: Charge): void {
    const sums = this.#of(index, keys);
    if (sums === undefined) return;
    sums.jobs += 1n;
    sums.duration += duration;
    sums.compute += compute;
    if (billable) sums.billable += compute;
  }

  adjust({ amount, index, keys }: Pick<Charge, "index" | "keys"> & { amount: bigint }): void {
    const sums = this.#of(index, keys);
    if (sums === undefined) return;
    sums.adjustment += amount;
    sums.billable += amount;
  }

  /** Undefined for what the file does not cover, and for what it should have a row for and has none. */
  #of(index: bigint, keys: Charge["keys"]): Sums | undefined {
    if (index >= this.#file.asOf || !this.#file.covers(keys)) return undefined;
    const key = JSON.stringify(this.#file.group.map((name) => keys[name]));
    if (!this.#file.rows.has(key)) {
      this.#missing ??= { count: 0n, first: index, key };
      this.#missing.count += 1n;
      return undefined;
    }
    const sums = this.#sums.get(key) ?? { ...NOTHING };
    this.#sums.set(key, sums);
    return sums;
  }

  /** `size`: entries that the walk covered. */
  check(size: bigint, findings: Findings, open: Findings<OpenCode>): void {
    const { asOf, name, rows, totals } = this.#file;
    if (asOf > size) {
      open.add("usage-as-of", { path: name }, `as of ${asOf}, the checkpoint covers ${size}`);
      return;
    }
    const all = { ...NOTHING };
    for (const [key, said] of rows) {
      const detail = difference(said, this.#sums.get(key) ?? NOTHING);
      if (detail !== "") findings.add("usage-row", { path: name }, `${key}: ${detail}`);
      all.jobs += said.jobs;
      all.duration += said.duration;
      all.compute += said.compute;
      all.adjustment += said.adjustment;
      all.billable += said.billable;
    }
    const detail = difference(totals, all);
    if (detail !== "") findings.add("usage-totals", { path: name }, detail);
    if (this.#missing !== undefined) {
      const { count, first, key } = this.#missing;
      const where = { index: first, path: name };
      findings.add(
        "usage-row-missing",
        where,
        `${count} jobs or adjustments have no row, the first ${key}`,
      );
    }
  }
}

/** Names each figure that differs, with what the entries give. */
function difference(said: Said, sums: Sums): string {
  const net = sums.compute + sums.adjustment;
  const expected: Said = {
    ...sums,
    net,
    compute_minutes: minutes(net, 4),
    amount_used: minutes(net, 2),
    shared_runners_duration: String(sums.duration / 1000n),
  };
  return (Object.keys(expected) as (keyof Said)[])
    .filter((name) => said[name] !== expected[name])
    .map((name) => `${name} ${said[name]}, not ${expected[name]}`)
    .join("; ");
}

/** Half away from zero, which has no sign. */
function minutes(amount: bigint, places: number): string {
  const scale = 10n ** BigInt(places);
  const size = amount < 0n ? -amount : amount;
  const rounded = (2n * size * scale + MICRO_PER_MINUTE) / (2n * MICRO_PER_MINUTE);
  const text = `${rounded / scale}.${String(rounded % scale).padStart(places, "0")}`;
  return amount < 0n && rounded > 0n ? `-${text}` : text;
}

/** Undefined for a member that this version does not know: what it leaves out cannot be summed again. */
function readQuery(value: unknown): UsageFile["covers"] | undefined {
  const query = record(value);
  if (query === undefined) return undefined;
  const { namespaces, ...members } = query;
  if (namespaces !== undefined && !isTexts(namespaces)) return undefined;
  const filters = Object.entries(members).map(([name, value]) => {
    const filter = Object.hasOwn(FILTERS, name) ? FILTERS[name as keyof typeof FILTERS] : undefined;
    return typeof value === "string" && filter !== undefined ? { filter, value } : undefined;
  });
  if (!filters.every((filter) => filter !== undefined)) return undefined;
  const visible = namespaces && new Set(namespaces);
  return (keys) =>
    (visible === undefined || visible.has(keys.namespace)) &&
    filters.every(({ filter, value }) => filter(keys, value));
}

function readGroup(value: unknown): UsageKey[] | undefined {
  if (!isTexts(value) || new Set(value).size !== value.length) return undefined;
  const group = USAGE_KEYS.filter((key) => value.includes(key));
  return group.length === value.length ? group : undefined;
}

function readSaid(value: unknown): Said | undefined {
  const row = record(value);
  if (row === undefined) return undefined;
  const [compute, adjustment, net, billable] = AMOUNTS.map((name) => readAmount(row[name]));
  const { jobs, duration_ms, compute_minutes, amount_used, shared_runners_duration } = row;
  if (!isInteger(jobs) || !isInteger(duration_ms)) return undefined;
  if (compute === undefined || adjustment === undefined) return undefined;
  if (net === undefined || billable === undefined) return undefined;
  return {
    jobs: BigInt(jobs),
    duration: BigInt(duration_ms),
    compute,
    adjustment,
    net,
    billable,
    compute_minutes: String(compute_minutes),
    amount_used: String(amount_used),
    shared_runners_duration: String(shared_runners_duration),
  };
}

const AMOUNTS = [
  "gross_compute_ms",
  "adjustment_compute_ms",
  "compute_ms",
  "billable_compute_ms",
] as const;

function readAmount(value: unknown): bigint | undefined {
  return typeof value === "string" && AMOUNT.test(value) ? micro(value) : undefined;
}

function isInteger(value: unknown): value is string {
  return typeof value === "string" && INTEGER.test(value);
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function record(value: unknown): Record<string, unknown> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not JSON, so no answer of the service
  }
}

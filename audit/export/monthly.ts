/** Rows of the monthly files: GitLab's columns first, each from the sums behind them (docs/exports.md). */
import type { Row, TableName } from "../../src/core/export/tables.ts";
import type { OpenPiles } from "../tally/piles.ts";
import { monthOfNumber, writeMicro } from "../tally/record.ts";
import type { Charges } from "./charges.ts";
import { Fold, type Key, type Part } from "./fold.ts";

export const MONTHLY = [
  "monthly_hosted_runner",
  "monthly_namespace",
  "monthly_project",
] as const satisfies readonly TableName[];
export type Monthly = (typeof MONTHLY)[number];

/** The order of a file's rows, within one billing month. */
const PARTS = {
  monthly_namespace: ["tracking", "namespace", "usage_month"],
  monthly_project: ["tracking", "namespace", "project", "usage_month"],
  monthly_hosted_runner: ["runner", "namespace", "project", "usage_month"],
} as const satisfies Record<Monthly, readonly Part[]>;
type MonthlyPart = (typeof PARTS)[Monthly][number];
type MonthlyKey = Key<MonthlyPart>;

/** Ids are below 2^63, and neighbouring ones share a pile. */
const PILE_BITS = 12n;
const ID_BITS = 63n;
const PILE_OF: Record<Monthly, (key: MonthlyKey) => number> = {
  monthly_namespace: byNamespace,
  monthly_project: byNamespace,
  monthly_hosted_runner: ({ runner }) => Number(runner >> PILE_BITS),
};

const TRACKINGS = ["hosted", "self_managed"] as const;
const MICRO_PER_MINUTE = 60_000_000_000n;

interface Figures {
  month: string;
  duration: bigint;
  net: bigint;
  /** The last columns of each file, written. */
  rest: string[];
}

/** In the order of the file's rows. `months` are billing months in their order. */
export function* monthlyRows(
  name: Monthly,
  { charges, months }: { charges: Charges; months: readonly string[] },
  open: OpenPiles,
): Generator<Row> {
  for (const month of months) {
    const how = { parts: PARTS[name], amounts: 5, pileOf: PILE_OF[name] };
    const fold = new Fold<MonthlyPart>(open, how);
    for (const charge of charges.posted(month)) {
      const { adjustment, billable, compute, duration, index, jobs, tracking } = charge;
      if (name === "monthly_hosted_runner" && tracking !== 0n) continue;
      fold.add(charge, index, [jobs, duration, compute, adjustment, billable]);
    }
    for (const { amounts, key, last } of fold.sums()) {
      const [jobs = 0n, duration = 0n, gross = 0n, adjustment = 0n, billable = 0n] = amounts;
      const net = gross + adjustment;
      const sums = [gross, adjustment, net, billable + adjustment].map(writeMicro);
      const rest = [String(jobs), String(duration), ...sums, String(last)];
      yield WRITE[name](key, { month, duration, net, rest });
    }
  }
}

const WRITE: Record<Monthly, (key: MonthlyKey, figures: Figures) => Row> = {
  monthly_namespace: (key, { duration, month, net, rest }) => [
    ...[String(key.namespace), month, minutes(net, 2), seconds(duration)],
    ...[trackingOf(key), usageMonthOf(key), ...rest],
  ],
  monthly_project: (key, { duration, month, net, rest }) => [
    ...[String(key.project), month, minutes(net, 2), seconds(duration)],
    ...[trackingOf(key), String(key.namespace), usageMonthOf(key), ...rest],
  ],
  monthly_hosted_runner: (key, { duration, month, net, rest }) => [
    ...[String(key.runner), seconds(duration), String(key.project), String(key.namespace)],
    ...[month, minutes(net, 4), usageMonthOf(key), ...rest],
  ],
};

function byNamespace({ namespace, tracking }: MonthlyKey): number {
  return Number(((tracking << ID_BITS) | namespace) >> PILE_BITS);
}

export function trackingOf({ tracking }: Key<"tracking">): string {
  return TRACKINGS[Number(tracking)] ?? "";
}

export function usageMonthOf({ usage_month }: Key<"usage_month">): string {
  return monthOfNumber(Number(usage_month));
}

function seconds(duration: bigint): string {
  return String(duration / 1000n);
}

/** Half away from zero, which has no sign. */
function minutes(amount: bigint, places: 2 | 4): string {
  const unit = MICRO_PER_MINUTE / 10n ** BigInt(places);
  const size = amount < 0n ? -amount : amount;
  const rounded = (2n * size + unit) / (2n * unit);
  const digits = String(rounded).padStart(places + 1, "0");
  const text = `${digits.slice(0, -places)}.${digits.slice(-places)}`;
  return amount < 0n && rounded > 0n ? `-${text}` : text;
}

/**
 * What a card would have charged where others did (DESIGN §6): a report, which changes nothing. Its differences
 * may become adjustments, by whoever decides about those.
 */
import { charge, formatSignedComputeMs } from "./charge.ts";
import { ADJUSTMENT_LINES_MAX, type AdjustmentLine } from "./control.ts";
import type { Body } from "./entry.ts";
import type { Card, Prefix } from "./prefix.ts";
import { type Build, type Machine, priceOf, type Rates } from "./rate.ts";
import type { Milliseconds } from "./unit.ts";

/** A card as it is proposed: what decides about a charge, and nothing of who says so. */
export type ProposedCard = Pick<
  Body<"rate_card">,
  "not_billable" | "project_factors" | "runner_factors" | "tracking"
>;

/** The prefix as if the card had been in force for its tracking all the time. */
export function ratesUnder(prefix: Prefix, proposed: ProposedCard): Rates {
  const card: Card = {
    ...{ approval: "", by: "", effective_from: "", salt: "", source: "" },
    ...proposed,
    index: -1n,
  };
  return {
    get billingFrom() {
      return prefix.billingFrom;
    },
    card: (tracking, instant) => {
      return tracking === proposed.tracking ? card : prefix.card(tracking, instant);
    },
    limit: (namespace, instant) => prefix.limit(namespace, instant),
    projectClass: (project, instant) => prefix.projectClass(project, instant),
  };
}

/** A usage as it stands. `charged`: of hosted usage what is billed; of self-managed what is counted. */
export interface Rated {
  readonly build: Build;
  readonly machine: Machine;
  readonly duration: Milliseconds;
  readonly usage_month: string;
  readonly charged: bigint;
}

/** In 10⁻⁶ compute-milliseconds; undefined where the card has no rate for it. */
export function chargeUnder(rates: Rates, { build, duration, machine }: Rated): bigint | undefined {
  const price = priceOf(rates, build, machine);
  if (price === undefined) return undefined;
  const isCharged = machine.tracking === "self_managed" || price.not_billable === "";
  return isCharged ? charge(duration, price.factor) : 0n;
}

/** Of one namespace, usage month and machine type. */
export interface Difference {
  readonly namespace_id: string;
  readonly usage_month: string;
  readonly machine_type: string;
  jobs: bigint;
  /** Of those, the ones that the card has no rate for; they are in neither sum. */
  unrated: bigint;
  stands: bigint;
  would: bigint;
}

/** Sums by namespace, usage month and machine type: as many as there are of those, however long the log. */
export class Differences {
  readonly #rows = new Map<string, Difference>();

  add(rated: Rated, would: bigint | undefined): void {
    const { job } = rated.build;
    const { machine_type } = rated.machine;
    const row = this.#row(job.root_namespace_id, rated.usage_month, machine_type);
    row.jobs += 1n;
    if (would === undefined) {
      row.unrated += 1n;
      return;
    }
    row.stands += rated.charged;
    row.would += would;
  }

  /** Takes in the sums of another part of the log. */
  merge({
    jobs,
    machine_type,
    namespace_id,
    stands,
    unrated,
    usage_month,
    would,
  }: Difference): void {
    const row = this.#row(namespace_id, usage_month, machine_type);
    row.jobs += jobs;
    row.unrated += unrated;
    row.stands += stands;
    row.would += would;
  }

  /** In the order of usage month, namespace (as a number) and machine type. */
  rows(): Difference[] {
    return [...this.#rows.values()].sort(
      (a, b) =>
        byText(a.usage_month, b.usage_month) ||
        a.namespace_id.length - b.namespace_id.length ||
        byText(a.namespace_id, b.namespace_id) ||
        byText(a.machine_type, b.machine_type),
    );
  }

  #row(namespace_id: string, usage_month: string, machine_type: string): Difference {
    // A machine type may hold anything but a control character.
    const key = [namespace_id, usage_month, machine_type].join("\n");
    const known = this.#rows.get(key);
    if (known !== undefined) return known;
    const sums = { jobs: 0n, unrated: 0n, stands: 0n, would: 0n };
    const row = { namespace_id, usage_month, machine_type, ...sums };
    this.#rows.set(key, row);
    return row;
  }
}

/**
 * The adjustments that would make up for all differences: lines of a namespace's month, as many together as
 * one entry takes, of one posting month each.
 */
export function* adjustmentsFor(
  rows: readonly Difference[],
  postingMonth: (usageMonth: string) => string,
): Generator<{ billing_month: string; lines: AdjustmentLine[] }> {
  const months = new Map<string, { namespace_id: string; usage_month: string; amount: bigint }>();
  for (const { namespace_id, stands, usage_month, would } of rows) {
    const key = `${usage_month} ${namespace_id}`;
    const month = months.get(key) ?? { namespace_id, usage_month, amount: 0n };
    months.set(key, { ...month, amount: month.amount + would - stands });
  }
  let part: { billing_month: string; lines: AdjustmentLine[] } | undefined;
  for (const { amount, namespace_id, usage_month } of months.values()) {
    if (amount === 0n) continue;
    const billing_month = postingMonth(usage_month);
    const isFull = part?.lines.length === ADJUSTMENT_LINES_MAX;
    if (part !== undefined && (isFull || part.billing_month !== billing_month)) {
      yield part;
      part = undefined;
    }
    part ??= { billing_month, lines: [] };
    const scope = { namespace_id, project_id: "", usage_month };
    part.lines.push({ amount: formatSignedComputeMs(amount), entry: "", ...scope, reverses: "" });
  }
  if (part !== undefined) yield part;
}

function byText(a: string, b: string): number {
  return Number(a > b) - Number(a < b);
}

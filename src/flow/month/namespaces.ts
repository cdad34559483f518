/** The namespaces of a month, one after the other; never more of them in memory than are being looked at. */
import type { Posted, Share } from "../../core/month/allocation.ts";
import { addSums, NO_SUMS, type Rollup, type Sums } from "../../core/month/lines.ts";
import { rollForward } from "../../core/month/roll-forward.ts";
import type { OfNamespace } from "../../core/month/tally.ts";
import type { PackFact } from "../../core/quota/quota.ts";
import type { Transaction } from "../../store/connect.ts";
import { readPackNamespaces } from "../../store/month-figures.ts";
import { type MonthUsage, readMonthUsage } from "../../store/months.ts";
import type { OwnFacts } from "../quota/facts.ts";
import type { CutOff } from "./cut-off.ts";
import { split } from "./split.ts";

/** With all versions of its packs, oldest first. */
export interface CountedNamespace extends OfNamespace {
  packs: readonly PackFact[];
}

/** Namespaces whose facts are asked for at once. */
const BATCH = 500;

/**
 * All that anything is posted to the month of, or that have packs, in the order of their numbers.
 *
 * @param tx sees the figures at the cut-off or beyond
 * @throws Error where the quota counts a month otherwise: one of both is wrong
 */
export async function* countNamespaces(
  tx: Transaction,
  log: string,
  cutOff: CutOff,
): AsyncGenerator<CountedNamespace[]> {
  const withPacks = await readPackNamespaces(tx, log, cutOff.index);
  const usages = readMonthUsage(tx, log, cutOff.month, cutOff.index);
  for await (const batch of batches(merged(usages, withPacks))) {
    yield await counted(tx, log, cutOff, batch);
  }
}

/** What is posted of one namespace; nothing, where it is here for its packs. */
interface Used {
  namespace: string;
  usages: MonthUsage[];
}

async function counted(
  tx: Transaction,
  log: string,
  cutOff: CutOff,
  batch: readonly Used[],
): Promise<CountedNamespace[]> {
  const { month } = cutOff;
  const postings = batch.map(({ namespace, usages }) => ({ namespace, posted: postedOf(usages) }));
  const parts = await split(tx, log, cutOff, postings);
  return batch.map(({ namespace, usages }) => {
    const part = parts.get(namespace);
    if (part === undefined) throw new Error("namespaces: one that was not split");
    const { facts, own, shares } = part;
    assertSame(own, month, shares);
    const rolls = facts.packs.length === 0 ? [] : rollForward(facts, month);
    return { namespace, usages, rollups: rollupsOf(usages), shares, rolls, packs: facts.packs };
  });
}

/** By namespace, in the order of numbers. @param withPacks in that order */
async function* merged(
  usages: AsyncIterable<MonthUsage>,
  withPacks: readonly string[],
): AsyncGenerator<Used> {
  let current: Used | undefined;
  let next = 0;
  function* packsBelow(bound: bigint | undefined): Generator<Used> {
    for (; next < withPacks.length; next += 1) {
      const namespace = withPacks[next] ?? "";
      if (bound !== undefined && BigInt(namespace) >= bound) return;
      yield { namespace, usages: [] };
    }
  }
  for await (const usage of usages) {
    const namespace = usage.namespace_id;
    if (current?.namespace === namespace) {
      current.usages.push(usage);
      continue;
    }
    if (current !== undefined) yield current;
    yield* packsBelow(BigInt(namespace));
    if (withPacks[next] === namespace) next += 1;
    current = { namespace, usages: [usage] };
  }
  if (current !== undefined) yield current;
  yield* packsBelow(undefined);
}

async function* batches(all: AsyncIterable<Used>): AsyncGenerator<Used[]> {
  let batch: Used[] = [];
  for await (const each of all) {
    batch.push(each);
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** Figures that are made from entries by two ways are compared before anything is final. */
function assertSame({ firstMonth, used }: OwnFacts, month: string, shares: readonly Share[]): void {
  if (month < firstMonth) return;
  const own = shares.find(({ usage_month }) => usage_month === month);
  const billable = own === undefined ? 0n : own.usage - own.not_billable;
  if (billable !== (used.get(month) ?? 0n)) {
    throw new Error(`namespaces: the quota has other figures of ${month}`);
  }
}

function postedOf(usages: readonly MonthUsage[]): Posted[] {
  const sums = summed(usages, ({ usage_month }) => usage_month);
  return Array.from(sums, ([usage_month, { billable_compute_ms, compute_ms, adjustment }]) => ({
    usage_month,
    billable: billable_compute_ms + adjustment,
    not_billable: compute_ms - billable_compute_ms,
  }));
}

function rollupsOf(usages: readonly MonthUsage[]): Rollup[] {
  const sums = summed(usages, ({ usage_month, tracking }) => `${usage_month}\n${tracking}`);
  return Array.from(sums, ([key, sum]) => {
    const first = usages.find((each) => `${each.usage_month}\n${each.tracking}` === key);
    if (first === undefined) throw new Error("namespaces: a sum of nothing");
    const { namespace_id, usage_month, tracking } = first;
    return { ...sum, namespace_id, usage_month, tracking };
  });
}

/** In the order in which the keys come. */
function summed(
  usages: readonly MonthUsage[],
  keyOf: (usage: MonthUsage) => string,
): Map<string, Sums> {
  const sums = new Map<string, Sums>();
  for (const usage of usages) {
    const key = keyOf(usage);
    sums.set(key, addSums(sums.get(key) ?? NO_SUMS, usage));
  }
  return sums;
}

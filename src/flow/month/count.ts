/**
 * A billing month counted from its entries: allocations, packs, totals and the digests of `month_closed`
 * (docs/months.md). Nothing of it is ever in memory but the namespaces that are being looked at.
 */
import { parseComputeMs, parseSignedComputeMs } from "../../core/charge.ts";
import type { Body } from "../../core/entry.ts";
import { allocate, type Posted, type Share } from "../../core/month/allocation.ts";
import {
  accountLine,
  addSums,
  formatSums,
  LineDigest,
  NO_SUMS,
  type Rollup,
  rollupLine,
  type Sums,
} from "../../core/month/lines.ts";
import { type PackRoll, rollForward } from "../../core/month/roll-forward.ts";
import {
  type Digested,
  digested,
  type OfNamespace,
  type Tallied,
  Tally,
} from "../../core/month/tally.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readHeads } from "../../store/heads.ts";
import { readBillable } from "../../store/month-conditions.ts";
import { readPackNamespaces, readPostedBefore, readShown } from "../../store/month-figures.ts";
import { type MonthUsage, readMonthUsage } from "../../store/months.ts";
import { type CommonFacts, type OwnFacts, readCommon, readOwn, together } from "../quota/facts.ts";
import { snapshot } from "../usage/show.ts";
import { endOf } from "./conditions.ts";
import { bePatient } from "./patience.ts";

export interface Counting {
  /** Sees the figures at the cut-off or beyond. */
  tx: Transaction;
  log: string;
  month: string;
  /** Of the cut-off. */
  closing: bigint;
}

/** What the rows of a closed month are written from, as they are counted. */
export interface Sink {
  allocations(lines: readonly { namespace: string; share: Share }[]): Promise<void>;
  packs(lines: readonly { namespace: string; roll: PackRoll }[]): Promise<void>;
}

export interface Counted extends Tallied {
  accounts: Digested;
}

/** Namespaces whose facts are asked for at once. */
const BATCH = 500;

/** @throws Error where the quota counts a month otherwise: one of both is wrong */
export async function countMonth(counting: Counting, sink?: Sink): Promise<Counted> {
  const { tx, log, month, closing } = counting;
  const [common, head] = await Promise.all([readCommon(tx, log), readHeads(tx, [log])]);
  const at = head.get(log);
  if (at === undefined) throw new Error("count: no such log");
  const tally = new Tally(month);
  const withPacks = await readPackNamespaces(tx, log, closing);
  const own = (namespaces: readonly string[]) => readOwn(tx, log, at, namespaces);
  const usages = readMonthUsage(tx, log, month, closing);
  for await (const batch of batches(merged(usages, withPacks))) {
    const lines = await splitBatch(counting, { common, own }, batch);
    for (const each of lines) tally.add(each);
    if (sink === undefined) continue;
    await sink.allocations(
      lines.flatMap(({ namespace, shares }) => shares.map((share) => ({ namespace, share }))),
    );
    await sink.packs(
      lines.flatMap(({ namespace, rolls }) => rolls.map((roll) => ({ namespace, roll }))),
    );
  }
  const accounts = new LineDigest();
  for (const each of await readBillable(tx, log, month, { until: endOf(month), below: closing })) {
    const { account_id, subscription_id, namespace_id } = each;
    if (account_id === null || subscription_id === null) continue;
    accounts.add(accountLine({ account_id, subscription_id, namespace_id }));
  }
  return { ...tally.end(), accounts: digested(accounts) };
}

/** What of `month_closed` is counted. */
export type Figures = Pick<
  Body<"month_closed">,
  | "accounts_sha256"
  | "allocations"
  | "allocations_sha256"
  | "packs_sha256"
  | "rollups_sha256"
  | "totals"
>;

export function figuresFrom({ accounts, allocations, packs, rollups, totals }: Counted): Figures {
  return {
    accounts_sha256: accounts.sha256,
    allocations: String(allocations.lines),
    allocations_sha256: allocations.sha256,
    packs_sha256: packs.sha256,
    rollups_sha256: rollups.sha256,
    totals: formatSums(totals),
  };
}

/** The digest of `rollups_sha256`, of what the public view shows. */
export async function digestShown(sql: Sql, log: string, month: string): Promise<string> {
  const digest = new LineDigest();
  await snapshot(sql, async (tx) => {
    await bePatient(tx);
    for await (const { adjustment, billable, gross, ...row } of readShown(tx, { log, month })) {
      const adjusted = parseSignedComputeMs(adjustment);
      digest.add(
        rollupLine({
          ...row,
          jobs: BigInt(row.jobs),
          duration_ms: BigInt(row.duration_ms),
          compute_ms: parseComputeMs(gross),
          billable_compute_ms: parseSignedComputeMs(billable) - adjusted,
          adjustment: adjusted,
        }),
      );
    }
  });
  return digest.end();
}

/** What is posted of one namespace; nothing, where it is here for its packs. */
interface Posting {
  namespace: string;
  usages: MonthUsage[];
}

/** By namespace, in the order of numbers. @param withPacks in that order */
async function* merged(
  usages: AsyncIterable<MonthUsage>,
  withPacks: readonly string[],
): AsyncGenerator<Posting> {
  let current: Posting | undefined;
  let next = 0;
  function* packsBelow(bound: bigint | undefined): Generator<Posting> {
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

async function* batches(all: AsyncIterable<Posting>): AsyncGenerator<Posting[]> {
  let batch: Posting[] = [];
  for await (const each of all) {
    batch.push(each);
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

interface FactSource {
  common: CommonFacts;
  own: (namespaces: readonly string[]) => Promise<Map<string, OwnFacts>>;
}

async function splitBatch(
  { tx, log, month }: Counting,
  { common, own }: FactSource,
  batch: readonly Posting[],
): Promise<OfNamespace[]> {
  const known = await own(batch.map(({ namespace }) => namespace));
  const late = batch.filter(({ usages }) => usages.some(({ usage_month }) => usage_month < month));
  const earlier = await readEarlier(tx, { log, month }, late);
  return batch.map(({ namespace, usages }) => {
    const facts = known.get(namespace);
    if (facts === undefined) throw new Error("count: a namespace without facts");
    const posted = postedOf(usages);
    assertSame(facts, month, posted);
    return {
      namespace,
      usages,
      rollups: rollupsOf(usages),
      shares: allocate({
        facts: together(common, facts),
        month,
        posted,
        earlier: earlier.get(namespace) ?? new Map(),
      }),
      rolls: facts.packs.length === 0 ? [] : rollForward(together(common, facts), month),
    };
  });
}

/** By namespace and usage month. */
async function readEarlier(
  tx: Transaction,
  of: { log: string; month: string },
  late: readonly Posting[],
): Promise<Map<string, Map<string, bigint>>> {
  const sums = new Map(late.map(({ namespace }) => [namespace, new Map<string, bigint>()]));
  if (late.length === 0) return sums;
  for (const { namespace_id, usage_month, amount } of await readPostedBefore(tx, of, [
    ...sums.keys(),
  ])) {
    sums.get(namespace_id)?.set(usage_month, parseSignedComputeMs(amount));
  }
  return sums;
}

/** Figures that are made from entries by two ways are compared before anything is final. */
function assertSame(
  { firstMonth, used }: OwnFacts,
  month: string,
  posted: readonly Posted[],
): void {
  if (month < firstMonth) return;
  const own = posted.find(({ usage_month }) => usage_month === month);
  if ((own?.billable ?? 0n) !== (used.get(month) ?? 0n)) {
    throw new Error(`count: the quota has other figures of ${month}`);
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
    if (first === undefined) throw new Error("count: a sum of nothing");
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

/**
 * Live usage against the log, namespace by namespace: compared, repaired, and what was found is said
 * (DESIGN §9). Repairs go through the same door as decisions, so none can make what a decision could not.
 */
import { Problem } from "../../core/problem.ts";
import { type Figures, figuresOf } from "../../core/quota/figures.ts";
import type { Ask, NamespaceKey } from "../../core/quota/live.ts";
import { quotaAt } from "../../core/quota/quota.ts";
import { instantText } from "../../core/unit.ts";
import { askNamespace } from "./ask.ts";
import type { Held } from "./copy.ts";
import { apart, standingOf, sumsApart } from "./drift.ts";
import {
  abreast,
  type Found,
  glance,
  type Looked,
  later,
  look,
  NEVER,
  pages,
  type Reconciling,
} from "./kept.ts";
import type { Ledger } from "./ledger.ts";

const JOBS_PER_LOOK = 1_000;

/**
 * All namespaces of which anything is kept: figures, sums and ended jobs. One process at a time does it.
 *
 * @returns how many were compared
 * @throws Problem `busy`: the database is away
 */
export async function compareAll(reconciling: Reconciling, found: Found): Promise<number> {
  const { live } = reconciling;
  let namespaces = 0;
  for await (const page of pages(live.walk())) {
    namespaces += await comparePage(reconciling, page, found);
  }
  return namespaces;
}

async function comparePage(
  reconciling: Reconciling,
  page: readonly NamespaceKey[],
  found: Found,
): Promise<number> {
  const { ledger } = reconciling;
  const [{ log } = { log: "" }] = page;
  const looked: Looked[] = [];
  await abreast(page, async (key) => {
    const seen = await look(reconciling, key);
    if (seen !== undefined) looked.push(seen);
  });
  if (looked.length === 0) return 0;
  // After the look: the log is as long by now as anything that was kept, or it has lost its end.
  const names = looked.map(({ key }) => key.namespace);
  const reading = await ledger.read(log, names).catch(missing);
  if (reading === undefined) return 0;
  const [ended, revoked] = await Promise.all([
    endedAmong(ledger, log, looked),
    ledger.revoked(log),
  ]);
  await abreast(looked, async (each) => {
    const held = reading.held.get(each.key.namespace);
    if (held === undefined) throw new Error("reconcile: a namespace was read and is not there");
    // Of the time of the look: a month may end in between.
    const own = computed(held, each.at);
    await compare(reconciling, { ...each, held, own, ended, revoked }, found).catch(later);
  });
  return looked.length;
}

/** A Redis that outlived a database has keys of logs that are not there; they run out by themselves. */
function missing(error: unknown): undefined {
  if (error instanceof Problem && error.code === "not-found") return undefined;
  throw error;
}

function computed({ facts, ...known }: Held, now: number): Figures {
  return figuresOf(quotaAt(facts, instantText(now)), known);
}

async function endedAmong(
  ledger: Ledger,
  log: string,
  looked: readonly Looked[],
): Promise<ReadonlyMap<string, bigint>> {
  const jobs = looked.flatMap(({ kept }) => (kept?.jobs ?? []).map(({ job }) => job));
  const ended = new Map<string, bigint>();
  for (let i = 0; i < jobs.length; i += JOBS_PER_LOOK) {
    const part = await ledger.onLog(log, jobs.slice(i, i + JOBS_PER_LOOK));
    for (const [job, index] of part) ended.set(job, index);
  }
  return ended;
}

interface Comparison extends Looked {
  held: Held;
  own: Figures;
  ended: ReadonlyMap<string, bigint>;
  revoked: ReadonlySet<bigint>;
}

async function compare(
  reconciling: Reconciling,
  { key, kept, held, own, ended, revoked }: Comparison,
  found: Found,
): Promise<void> {
  const { readAt } = held;
  if (kept === undefined) return await bring(reconciling, key, readAt);
  if (kept.figures.asOf === NEVER) return;
  const sums = sumsApart(kept);
  if (sums > 0n) {
    const now = reconciling.clock.now();
    await reconciling.live.run(key, { ...glance(now), recount: true });
    found({ kind: "sums", ...key, amount: sums });
  }
  const { asOf } = kept.figures;
  const standing = standingOf(kept.figures, own);
  if (standing === "ahead") {
    await replace(reconciling, key, held, own);
    return found({ kind: "ahead", ...key, amount: apart(kept.figures, own) });
  }
  // Where nothing has touched the namespace since, a report that came later was of another one.
  const upTo = standing === "same" ? own.asOf : asOf;
  // A start that is asked for again after the job ended is kept for a moment, and hurts nobody.
  const over = (kept.jobs ?? []).filter(({ job, kind }) => {
    return kind === "running" && (ended.get(job) ?? upTo) < upTo;
  });
  const unsaid = (kept.jobs ?? []).filter(({ by }) => revoked.has(by));
  const asks = [
    ...over.map(({ job }): Ask => ({ kind: "never_ran", job })),
    ...unsaid.map(({ job, by }): Ask => ({ kind: "revoked", job, by })),
  ];
  if (standing === "same" && asks.length === 0) return;
  await bring(reconciling, key, readAt, asks);
  if (standing === "figures") found({ kind: "figures", ...key, amount: apart(kept.figures, own) });
  for (const { job, amount } of over) found({ kind: "settled", ...key, job, amount });
  for (const { job, amount } of unsaid) found({ kind: "revoked", ...key, job, amount });
}

/** As any decision does: the log's figures, no older than those that were compared. */
async function bring(
  reconciling: Reconciling,
  key: NamespaceKey,
  readAt: number,
  asks: readonly Ask[] = [],
): Promise<void> {
  await askNamespace(reconciling, key, asks, { maxAgeMs: reconciling.clock.now() - readAt });
}

/** Kept figures that still hold would go on holding: they are newer than all that the log has. */
async function replace(
  { clock, live }: Reconciling,
  key: NamespaceKey,
  { since }: Held,
  figures: Figures,
): Promise<void> {
  const now = clock.now();
  await live.run(key, { now, figures, since, settled: [], force: true, asks: [] });
}

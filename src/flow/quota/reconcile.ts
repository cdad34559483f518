/**
 * Live usage against the log, namespace by namespace: compared, repaired, and what was found is said
 * (DESIGN §9). Repairs go through the same door as decisions, so none can make what a decision could not.
 */
import { Problem } from "../../core/problem.ts";
import { type Figures, figuresOf } from "../../core/quota/figures.ts";
import type { Ask, Command, Done, LiveJob, NamespaceKey } from "../../core/quota/live.ts";
import { quotaAt } from "../../core/quota/quota.ts";
import { instantText } from "../../core/unit.ts";
import { type Asking, askNamespace } from "./ask.ts";
import type { Held } from "./copy.ts";
import { DECISION_AGE_MS } from "./decide.ts";
import { apart, type Drift, standingOf, sumsApart } from "./drift.ts";
import type { Ledger } from "./ledger.ts";
import { Seen } from "./seen.ts";
import type { Live } from "./standing.ts";

export interface Reconciling extends Asking {
  ledger: Ledger;
  live: Live;
}

/** Is told of each finding when it is repaired. */
export type Found = (drift: Drift) => void;

/** Namespaces of one read of the log. */
const PAGE = 500;
/** Namespaces asked at once: those who wait for decisions are asked for at the same time. */
const ABREAST = 8;
const JOBS_PER_LOOK = 1_000;
/** What this process heard a moment ago may be on its way to Redis still. */
const SETTLING_MS = 5_000;

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

/**
 * What this process heard of running jobs is offered again where Redis has less of it, as after a flush: every
 * process does so, since nobody else heard it.
 */
export async function offerAgain(reconciling: Reconciling, found: Found): Promise<void> {
  const { live } = reconciling;
  if (live.state() === "none") return;
  await live.retry();
  const own: Asking = {
    ...reconciling,
    live: {
      run: async (key, command) => ({
        answer: await live.own.run(key, command),
        source: "process",
      }),
      state: () => "none",
    },
    seen: new Seen(),
  };
  for await (const page of pages(live.own.walk())) {
    await abreast(page, async (key) => {
      const mine = await runningIn(own, key).catch(later);
      if (mine?.length) await offer(reconciling, key, mine, found).catch(later);
    });
  }
}

/** A size that no log has: figures of it are the glance's own, and nothing is kept. */
const NEVER = 0n;

/** Looks and changes nothing: these figures are older than any. */
function glance(now: number): Command {
  const figures: Figures = {
    ...{ asOf: NEVER, touched: -1n, from: 0, until: Number.MAX_SAFE_INTEGER },
    ...{ startBound: undefined, runBound: undefined, readAt: now, text: "" },
  };
  return { now, figures, since: 0n, settled: [], inspect: true, asks: [] };
}

interface Looked {
  key: NamespaceKey;
  /** Epoch milliseconds. */
  at: number;
  /** Undefined: it does not hold at that time. */
  kept: Done | undefined;
}

/** Undefined: its server is away, and this process' copy is not what is compared. */
async function look({ clock, live }: Reconciling, key: NamespaceKey): Promise<Looked | undefined> {
  const at = clock.now();
  const { answer, source } = await live.run(key, glance(at));
  if (source === "process" && live.state() !== "none") return undefined;
  return { key, at, kept: answer.kind === "done" ? answer : undefined };
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
  const ended = await endedAmong(ledger, log, looked);
  await abreast(looked, async (each) => {
    const held = reading.held.get(each.key.namespace);
    if (held === undefined) throw new Error("reconcile: a namespace was read and is not there");
    // Of the time of the look: a month may end in between.
    const own = computed(held, each.at);
    await compare(reconciling, { ...each, held, own, ended }, found).catch(later);
  });
  return looked.length;
}

/** A Redis that outlived a database has keys of logs that are not there; they run out by themselves. */
function missing(error: unknown): undefined {
  if (error instanceof Problem && error.code === "not-found") return undefined;
  throw error;
}

/** One namespace that moves faster than it is read keeps nobody else waiting: it has its turn in the next round. */
function later(error: unknown): undefined {
  if (!(error instanceof Problem && error.code === "busy")) throw error;
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
}

async function compare(
  reconciling: Reconciling,
  { key, kept, held, own, ended }: Comparison,
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
  // A start that is asked for again after the job ended is kept for a moment, and hurts nobody.
  const over = (kept.jobs ?? []).filter(({ job, kind }) => {
    return kind === "running" && (ended.get(job) ?? asOf) < asOf;
  });
  if (standing === "same" && over.length === 0) return;
  const asks = over.map(({ job }): Ask => ({ kind: "never_ran", job }));
  await bring(reconciling, key, readAt, asks);
  if (standing === "figures") found({ kind: "figures", ...key, amount: apart(kept.figures, own) });
  for (const { job, amount } of over) found({ kind: "settled", ...key, job, amount });
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

async function runningIn(own: Asking, key: NamespaceKey): Promise<LiveJob[]> {
  const { answer } = await own.live.run(key, glance(own.clock.now()));
  const jobs =
    answer.kind === "done"
      ? answer.jobs
      : (await askNamespace(own, key, [], { maxAgeMs: DECISION_AGE_MS, inspect: true })).jobs;
  return (jobs ?? []).filter(({ kind }) => kind === "running");
}

async function offer(
  reconciling: Reconciling,
  key: NamespaceKey,
  mine: readonly LiveJob[],
  found: Found,
): Promise<void> {
  const { clock, live } = reconciling;
  const kept = (await look(reconciling, key))?.kept;
  if (kept === undefined) return;
  const known = new Map((kept.jobs ?? []).map((job) => [job.job, job]));
  const before = clock.now() - SETTLING_MS;
  const less = mine.filter(({ job, elapsedMs, heardAt }) => {
    const there = known.get(job);
    return heardAt <= before && (there === undefined || there.elapsedMs < elapsedMs);
  });
  if (less.length === 0) return;
  const asks = less.map(({ job, amount, elapsedMs, until }): Ask => {
    return { kind: "run", job, amount, elapsedMs, until };
  });
  const { results } = await askNamespace(reconciling, key, asks, { maxAgeMs: DECISION_AGE_MS });
  for (const [i, { job, amount }] of less.entries()) {
    const result = results[i];
    if (result?.onLog) await forget(live, key, clock.now(), job);
    else if (result?.known) {
      found({ kind: "lost", ...key, job, amount: amount - (known.get(job)?.amount ?? 0n) });
    }
  }
}

/** Its report is on the log: this process' copy alone did not know. */
async function forget(live: Live, key: NamespaceKey, now: number, job: string): Promise<void> {
  await live.own.run(key, { ...glance(now), asks: [{ kind: "never_ran", job }] });
}

/** Pages of one log each; what comes twice is taken once. */
async function* pages(
  walk: AsyncIterable<readonly NamespaceKey[]>,
): AsyncIterable<readonly NamespaceKey[]> {
  const seen = new Set<string>();
  const waiting = new Map<string, NamespaceKey[]>();
  for await (const keys of walk) {
    for (const key of keys) {
      const name = `${key.log}:${key.namespace}`;
      if (seen.has(name)) continue;
      seen.add(name);
      const page = waiting.get(key.log) ?? [];
      page.push(key);
      waiting.set(key.log, page);
      if (page.length < PAGE) continue;
      waiting.delete(key.log);
      yield page;
    }
  }
  yield* waiting.values();
}

/** All of them, so many at once. */
async function abreast<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  const lanes = Array.from({ length: ABREAST }, async () => {
    for (const item of left) await act(item);
  });
  await Promise.all(lanes);
}

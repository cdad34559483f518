/**
 * What one process heard, offered again where Redis has less of it: every process does so, since nobody else
 * heard it. What Redis knows to have been given up is not taken, and the copy forgets it too.
 */
import type { Ask, LiveJob, NamespaceKey } from "../../core/quota/live.ts";
import { type Asking, askNamespace } from "./ask.ts";
import { DECISION_AGE_MS } from "./decide.ts";
import { abreast, type Found, glance, later, look, pages, type Reconciling } from "./kept.ts";
import { Seen } from "./seen.ts";
import type { Live } from "./standing.ts";

/** What this process heard a moment ago may be on its way to Redis still. */
const SETTLING_MS = 5_000;

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
  const asks = less.map(({ job, amount, by, elapsedMs, until }): Ask => {
    return { kind: "run", job, amount, elapsedMs, until, by, offered: true };
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

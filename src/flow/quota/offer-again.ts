/**
 * What one process heard, offered again where Redis has less of it: every process does so, since nobody else
 * heard it. What Redis knows to have been given up is not taken, and the copy forgets it too.
 */
import type { Ask, LiveJob, NamespaceKey } from "../../core/quota/live.ts";
import { type Asking, askNamespace } from "./ask.ts";
import { askInTurns } from "./ask-in-turns.ts";
import { DECISION_AGE_MS } from "./decide.ts";
import { abreast, type Found, glance, later, look, pages, type Reconciling } from "./kept.ts";
import { Seen } from "./seen.ts";

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
    const [{ log } = { log: "" }] = page;
    // While the database is away it is not known; what is offered then is taken out again by the next round.
    const revoked = await reconciling.ledger.revoked(log).catch(later);
    await abreast(page, async (key) => {
      const mine = await runningIn(own, key).catch(later);
      if (mine === undefined || mine.length === 0) return;
      const isUnsaid = ({ by }: LiveJob): boolean => revoked?.has(by) === true;
      const asks = mine.filter(isUnsaid).map(unsay);
      if (asks.length > 0) await forget(reconciling, key, asks);
      const said = mine.filter((job) => !isUnsaid(job));
      await offer(reconciling, key, said, found).catch(later);
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
  const { clock } = reconciling;
  const kept = (await look(reconciling, key))?.kept;
  if (kept === undefined) return;
  const known = new Map((kept.jobs ?? []).map((job) => [job.job, job]));
  const before = clock.now() - SETTLING_MS;
  const less = mine.filter(({ job, amount, elapsedMs, heardAt }) => {
    const there = known.get(job);
    const isLess = there === undefined || there.elapsedMs < elapsedMs || there.amount < amount;
    return heardAt <= before && isLess;
  });
  if (less.length === 0) return;
  const asks = less.map(({ job, amount, by, elapsedMs, until }): Ask => {
    return { kind: "run", job, amount, elapsedMs, until, by, offered: true };
  });
  const { results } = await askInTurns(reconciling, key, asks, { maxAgeMs: DECISION_AGE_MS });
  for (const [i, { job, amount }] of less.entries()) {
    const result = results[i];
    // Its report is on the log: this process' copy alone did not know.
    if (result?.onLog) await forget(reconciling, key, [{ kind: "never_ran", job }]);
    else if (result?.known) {
      const there = known.get(job)?.amount ?? 0n;
      found({ kind: "lost", ...key, job, amount: amount > there ? amount - there : 0n });
    }
  }
}

function unsay({ job, by }: LiveJob): Ask {
  return { kind: "revoked", job, by };
}

/** In this process' copy alone. */
async function forget(
  { clock, live }: Reconciling,
  key: NamespaceKey,
  asks: readonly Ask[],
): Promise<void> {
  await live.own.run(key, { ...glance(clock.now()), asks });
}

/** The stated bounds against the machine that decides, with jobs that come, are heard, stop and are billed. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { charge, MINUTE } from "../../../src/core/charge.ts";
import type { Factor } from "../../../src/core/factor.ts";
import type { Figures } from "../../../src/core/quota/figures.ts";
import type { Ask } from "../../../src/core/quota/live.ts";
import { nothingKept, perform } from "../../../src/core/quota/machine.ts";
import { beyondAtMost, type Pace, startsAtMost } from "../../../src/core/quota/overshoot.ts";
import { milliseconds } from "../../../src/core/unit.ts";

const PACE: Pace = { heartbeatMs: 30_000n, roundMs: 10_000n };
const [HEARTBEAT, ROUND] = [30_000, 10_000];
const LATER = 10 ** 12;

interface Plan {
  /** Minutes. */
  limit: bigint;
  tolerance: bigint;
  floorMs: bigint;
  jobs: readonly Job[];
}

interface Job {
  startsAt: number;
  factor: Factor;
  /** False: it runs without having asked. */
  asks: boolean;
  /** How long it would run by itself. */
  lasts: number;
  /** From its start or last heartbeat to the next, in turn. */
  beats: readonly number[];
  /** From a no to its end, and from its end until its report is on the log. */
  stopsAfter: number;
  reportedAfter: number;
}

interface Outcome {
  /** Used beyond what was available. */
  beyond: bigint;
  started: number;
  /** Of jobs that were not on the log at the last yes. */
  unheard: Factor[];
}

/** All of it, event by event: a namespace, its ledger and its jobs. */
function simulate({ limit, tolerance, floorMs, jobs }: Plan): Outcome {
  const standing = nothingKept();
  const events: { at: number; happen: (at: number) => void }[] = [];
  const onLogAt = new Map<Job, number>();
  let [available, asOf, lastYes, used] = [limit * MINUTE, 1n, -1, 0n];

  const tell = (now: number, asks: readonly Ask[], settled: readonly string[] = []): boolean => {
    const figures: Figures = {
      ...{ asOf, touched: asOf - 1n, from: 0, until: LATER, readAt: now, text: "" },
      ...{ startBound: available, runBound: available + tolerance * MINUTE },
    };
    const answer = perform(standing, { now, figures, since: asOf - 1n, settled, asks });
    if (answer.kind !== "done") throw new Error(answer.kind);
    const yes = asks.length > 0 && answer.results.every(({ allowed }) => allowed);
    if (yes) lastYes = now;
    return yes;
  };

  jobs.forEach((job, i) => {
    const id = String(i);
    const amountAt = (at: number) => charge(milliseconds(BigInt(at - job.startsAt)), job.factor);
    let end = job.startsAt + job.lasts;
    const beat = (n: number) => (at: number) => {
      if (at >= end) return;
      const elapsedMs = BigInt(at - job.startsAt);
      const said = { job: id, amount: amountAt(at), elapsedMs, until: LATER, by: 2n };
      if (tell(at, [{ kind: "run", ...said }])) {
        events.push({ at: at + (job.beats[n] ?? HEARTBEAT), happen: beat(n + 1) });
      } else if (at + job.stopsAfter < end) {
        end = at + job.stopsAfter;
        events.push({ at: end, happen: finish });
      }
    };
    const finish = (at: number): void => {
      if (at === end) events.push({ at: at + job.reportedAfter, happen: report });
    };
    const report = (at: number): void => {
      available -= amountAt(end);
      used += amountAt(end);
      asOf += 1n;
      onLogAt.set(job, at);
      tell(at, [], [id]);
    };
    const start = (at: number): void => {
      const floor = charge(milliseconds(floorMs), job.factor);
      const ask = { kind: "start", job: id, floor, until: at + 300_000 } as const;
      if (job.asks && !tell(at, [ask])) return;
      onLogAt.set(job, LATER);
      events.push({ at: at + (job.beats[0] ?? HEARTBEAT), happen: beat(1) });
      events.push({ at: end, happen: finish });
    };
    events.push({ at: job.startsAt, happen: start });
  });

  while (events.length > 0) {
    const next = events.reduce((first, event) => (event.at < first.at ? event : first));
    events.splice(events.indexOf(next), 1);
    next.happen(next.at);
  }
  const unheard = [...onLogAt].filter(([, at]) => at > lastYes).map(([{ factor }]) => factor);
  return { beyond: used - limit * MINUTE, started: onLogAt.size, unheard };
}

const factor = fc.constantFrom<Factor>(
  { n: 1n, d: 1n },
  { n: 3n, d: 1n },
  { n: 12n, d: 1n },
  { n: 1n, d: 2n },
  { n: 1n, d: 30n },
);
const job = fc.record({
  startsAt: fc.integer({ min: 0, max: 600_000 }),
  factor,
  asks: fc.boolean(),
  lasts: fc.integer({ min: 1, max: 1_200_000 }),
  beats: fc.array(fc.integer({ min: 1, max: HEARTBEAT }), { maxLength: 20 }),
  stopsAfter: fc.integer({ min: 0, max: ROUND }),
  reportedAfter: fc.integer({ min: 0, max: 900_000 }),
});
const plan = fc.record({
  limit: fc.bigInt({ min: 0n, max: 30n }),
  tolerance: fc.constantFrom(0n, 1n, 5n),
  floorMs: fc.constantFrom(0n, 60_000n),
  jobs: fc.array(job, { minLength: 1, maxLength: 12 }),
});

test("with random jobs, reports and heartbeats, usage never passes the stated bound", () => {
  let reached = 0;
  fc.assert(
    fc.property(plan, (given) => {
      const { beyond, unheard } = simulate(given);
      if (beyond > given.tolerance * MINUTE) reached += 1;
      expect(beyond <= beyondAtMost(given.tolerance * MINUTE, unheard, PACE)).toBe(true);
    }),
    { numRuns: 1_000 },
  );
  expect(reached).toBeGreaterThan(100);
});

/** All heartbeats in one instant, the last yes of all of them at the very bound. */
function inStep(factors: readonly Factor[], tolerance: bigint, minutes: bigint): Plan {
  const alike = { startsAt: 0, asks: true, beats: [], reportedAfter: 0, stopsAfter: ROUND };
  const jobs = factors.map((each) => ({ ...alike, factor: each, lasts: 10 ** 9 }));
  return { limit: minutes - tolerance, tolerance, floorMs: 0n, jobs };
}

test("the bound is reached to the last unit where every heartbeat comes in step", () => {
  const factors = [1n, 1n, 3n, 12n].map((n) => ({ n, d: 1n }));
  // 17 compute minutes a minute: after twenty of them the bound is met, and not passed.
  for (const tolerance of [0n, 100n]) {
    const { beyond, unheard } = simulate(inStep(factors, tolerance, 17n * 20n));
    expect(unheard).toHaveLength(4);
    expect(beyond).toBe(beyondAtMost(tolerance * MINUTE, factors, PACE));
  }
});

test("ten minutes, fifty long jobs, no grace: beyond by fifty heartbeats and rounds at most", () => {
  const fifty = Array.from({ length: 50 }, () => ({ n: 1n, d: 1n }));
  const { beyond, started } = simulate(inStep(fifty, 0n, 10n));
  expect(started).toBe(50);
  expect(beyond <= beyondAtMost(0n, fifty, PACE)).toBe(true);
  // The bound that an operator is told: 50 × (30 + 10) s.
  expect(beyondAtMost(0n, fifty, PACE)).toBe((50n * 40n * MINUTE) / 60n);
});

const SMALL = { n: 1n, d: 1n };

test("starts that come at once are never more than the bound, and as many as it says", () => {
  const seconds = fc.bigInt({ min: 1n, max: 3_600n });
  fc.assert(
    fc.property(seconds, seconds, fc.nat(20), (left, floor, more) => {
      fc.pre(left / floor < 200n);
      const reserve = charge(milliseconds(floor * 1_000n), SMALL);
      const bound = startsAtMost((left * MINUTE) / 60n, reserve);
      const asked = Number(bound) + more;
      const standing = nothingKept();
      const figures: Figures = {
        ...{ asOf: 1n, touched: 0n, from: 0, until: LATER, readAt: 0, text: "" },
        ...{ startBound: (left * MINUTE) / 60n, runBound: undefined },
      };
      const asks = Array.from({ length: asked }, (_, i) => {
        return { kind: "start", job: String(i), floor: reserve, until: LATER } as const;
      });
      const answer = perform(standing, { now: 1, figures, since: 1n, settled: [], asks });
      if (answer.kind !== "done") throw new Error(answer.kind);
      const granted = answer.results.filter(({ allowed }) => allowed).length;
      expect(BigInt(granted)).toBe(bound);
    }),
  );
});

test("without a reserve every start at once is let through: the limit case has no bound", () => {
  const jobs = Array.from({ length: 300 }, () => {
    const alike = { startsAt: 0, asks: true, beats: [], reportedAfter: 0, stopsAfter: 0 };
    return { ...alike, factor: SMALL, lasts: 1_000 };
  });
  expect(simulate({ limit: 1n, tolerance: 0n, floorMs: 0n, jobs }).started).toBe(300);
  expect(simulate({ limit: 1n, tolerance: 0n, floorMs: 60_000n, jobs }).started).toBe(1);
  expect(startsAtMost(MINUTE, 0n)).toBeUndefined();
});

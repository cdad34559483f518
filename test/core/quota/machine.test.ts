/** Live usage as a machine, held to what is true of a log and of what was heard. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Command, Done } from "../../../src/core/quota/live.ts";
import { nothingKept, perform } from "../../../src/core/quota/machine.ts";
import { command, figures, goOn, NOW, neverRan, run, start } from "./live.ts";

/** A log, the processes that have read it so far, and what was heard of each job. */
interface World {
  /** Per entry the job whose usage it is, or none. */
  log: (string | undefined)[];
  read: number[];
  heard: Map<string, bigint>;
  standing: ReturnType<typeof nothingKept>;
}

type Step =
  | { kind: "report"; job: string }
  | { kind: "other" }
  | { kind: "read"; caller: number }
  | { kind: "heartbeat"; caller: number; job: string; elapsed: bigint; window: number }
  | { kind: "flush" };

const CALLERS = 3;
const caller = fc.nat(CALLERS - 1);
const job = fc.constantFrom("1", "2", "3", "4");
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("report" as const), job }),
  fc.record({ kind: fc.constant("other" as const) }),
  fc.record({ kind: fc.constant("read" as const), caller }),
  fc.record({
    kind: fc.constant("heartbeat" as const),
    caller,
    job,
    elapsed: fc.bigInt(1n, 9n),
    window: fc.nat(2),
  }),
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("flush" as const) }) },
);

test("a job is live if and only if it was heard and the log, at the index that is answered, lacks it", () => {
  let gaps = 0;
  let behinds = 0;
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 60, size: "max" }), (steps) => {
      const world: World = {
        log: [undefined],
        read: Array.from({ length: CALLERS }, () => 1),
        heard: new Map(),
        standing: nothingKept(),
      };
      for (const each of steps) {
        const refusals = take(world, each);
        gaps += refusals.filter((kind) => kind === "gap").length;
        behinds += refusals.filter((kind) => kind === "behind").length;
      }
    }),
    { numRuns: 500 },
  );
  expect(gaps).toBeGreaterThan(20);
  expect(behinds).toBeGreaterThan(20);
});

/** @returns the refusals on the way to the answer */
function take(world: World, given: Step): string[] {
  const { log, read, heard } = world;
  if (given.kind === "report") {
    if (!log.includes(given.job)) log.push(given.job);
  } else if (given.kind === "other") {
    log.push(undefined);
  } else if (given.kind === "read") {
    read[given.caller] = log.length;
  } else if (given.kind === "flush") {
    heard.clear();
    world.standing = nothingKept();
  } else {
    return beat(world, given);
  }
  return [];
}

/** As every caller does: it looks whether the job is on the log, asks, and comes again as it is told. */
function beat(world: World, given: Extract<Step, { kind: "heartbeat" }>): string[] {
  const { log, read, heard } = world;
  const refusals: string[] = [];
  let looked: Pick<Command, "looked" | "settled"> = { settled: [] };
  for (;;) {
    const asOf = read[given.caller] ?? 1;
    const since = Math.max(0, asOf - given.window);
    const own = log.slice(since, asOf).filter((name) => name !== undefined);
    const isOver = log.slice(0, asOf).includes(given.job);
    const answer = perform(world.standing, {
      ...looked,
      now: NOW,
      figures: figures({
        asOf: BigInt(asOf),
        touched: BigInt(log.slice(0, asOf).findLastIndex((name) => name !== undefined)),
        text: `{"at":"${asOf}"}`,
      }),
      since: BigInt(since),
      settled: [...own, ...looked.settled],
      inspect: true,
      asks: isOver ? [] : [run(given.job, given.elapsed)],
    });
    if (answer.kind === "done") {
      if (!isOver) heard.set(given.job, max(given.elapsed, heard.get(given.job) ?? 0n));
      check(world, answer);
      return refusals;
    }
    refusals.push(answer.kind);
    if (answer.kind === "behind") read[given.caller] = Math.max(asOf, Number(answer.asOf));
    else {
      const on = log.slice(0, asOf);
      looked = { looked: answer.jobs, settled: answer.jobs.filter((name) => on.includes(name)) };
    }
  }
}

function check({ log, heard }: World, answer: Done): void {
  const ended = log.slice(0, Number(answer.figures.asOf));
  const expected = [...heard].filter(([name]) => !ended.includes(name)).sort();
  expect(answer.jobs?.map(({ job: name, amount }) => [name, amount])).toEqual(expected);
  expect(answer.live).toBe(expected.reduce((sum, [, amount]) => sum + amount, 0n));
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

test("a reservation of a job may be of one that has ended since, as no record at all may", () => {
  const standing = nothingKept();
  const newer = figures({ asOf: 20n, touched: 19n });
  perform(standing, command([start("1"), run("2", 1n), neverRan("3")], { figures: newer }));
  const late = (job: string) => command([run(job, 5n)], { figures: figures({ asOf: 12n }) });
  for (const job of ["1", "3", "4"]) {
    expect(perform(standing, late(job))).toEqual({ kind: "behind", asOf: 20n });
  }
  expect(perform(standing, late("2"))).toMatchObject({ kind: "done" });
});

test("figures of the month before are not what a caller in the new month is answered by", () => {
  const standing = nothingKept();
  const newer = figures({ asOf: 20n, until: NOW + 10 });
  perform(standing, command([run("1", 30n)], { figures: newer }));
  const own = figures({ asOf: 12n, from: NOW + 10 });
  const ask = command([goOn("1")], { now: NOW + 10, figures: own });
  expect(perform(standing, ask)).toEqual({ kind: "behind", asOf: 20n });
  const caughtUp = figures({ asOf: 20n, from: NOW + 10, text: '{"month":"2027-02-01"}' });
  const answer = perform(standing, { ...ask, figures: caughtUp });
  expect(answer).toMatchObject({ kind: "done", figures: caughtUp, live: 30n });
});

test("a log that lost its tail is believed by whoever has looked", () => {
  const standing = nothingKept();
  perform(standing, command([run("1", 30n)], { figures: figures({ asOf: 20n, touched: 19n }) }));
  const shorter = figures({ asOf: 15n });
  const ask = command([run("2", 5n)], { figures: shorter });
  expect(perform(standing, ask)).toEqual({ kind: "behind", asOf: 20n });
  const forced = perform(standing, { ...ask, force: true });
  expect(forced).toMatchObject({ kind: "done", figures: shorter, live: 35n });
});

test("a job that was added after the others were looked up is looked up too", () => {
  const standing = nothingKept();
  const old = figures({ asOf: 5n });
  perform(standing, command([run("1", 30n)], { figures: old }));
  const far = command([], { since: 8n });
  expect(perform(standing, far)).toEqual({ kind: "gap", asOf: 5n, jobs: ["1"] });
  perform(standing, command([run("2", 30n)], { figures: old }));
  const again = { ...far, looked: ["1"], settled: ["1"] };
  expect(perform(standing, again)).toEqual({ kind: "gap", asOf: 5n, jobs: ["1", "2"] });
  const both = { ...far, looked: ["1", "2"], settled: ["1"] };
  expect(perform(standing, both)).toMatchObject({ kind: "done", live: 30n });
});

test("looking alone begins nothing", () => {
  const standing = nothingKept();
  perform(standing, command([], { inspect: true }));
  expect(standing).toEqual(nothingKept());
});

/** Live usage as a machine: what is said of one namespace, what is kept of it, and how long. */
import { expect, test } from "vitest";
import type { Answer, Ask, Command, Done } from "../../../src/core/quota/live.ts";
import { nothingKept, perform } from "../../../src/core/quota/machine.ts";
import { command, figures, NOW, neverRan, run, start } from "./live.ts";

const HOUR = 3_600_000;

function done(answer: Answer): Done {
  if (answer.kind !== "done") throw new Error(`answered: ${answer.kind}`);
  return answer;
}

/** One namespace, asked again and again. */
function opened(): (asks: readonly Ask[], given?: Partial<Command>) => Done {
  const standing = nothingKept();
  return (asks, given) => done(perform(standing, command(asks, given)));
}

test("heartbeats that are lost, late or repeated heal themselves", () => {
  const ask = opened();
  const later = NOW + 30_000;
  expect(ask([run("1", 30n)]).live).toBe(30n);
  expect(ask([run("1", 90n)], { now: later }).live).toBe(90n);
  expect(ask([run("1", 60n), run("1", 90n)], { now: later + 1 }).live).toBe(90n);
  expect(ask([], { inspect: true }).jobs).toMatchObject([{ elapsedMs: 90n, heardAt: later }]);
});

test("amount and time are each the most that was said, so nobody frees what another's job has used", () => {
  const ask = opened();
  const [job] = ask([run("1", 600n, 600n, NOW + 5 * HOUR)], { inspect: true }).jobs ?? [];
  const longer = { ...run("1", 900n, 1n, NOW + 1), by: 3n };
  const later = { now: NOW + 1, inspect: true } as const;
  const raised = { ...job, elapsedMs: 900n, heardAt: NOW + 1 };
  expect(ask([], later).jobs).toEqual([job]);
  expect(ask([{ ...longer, until: NOW + 2 }], later)).toMatchObject({ live: 600n, jobs: [raised] });
  const dearer = { ...run("1", 5n, 700n), by: 4n };
  expect(ask([dearer], later)).toMatchObject({
    live: 700n,
    jobs: [{ elapsedMs: 900n, amount: 700n, by: 4n }],
  });
});

test("what a key said that was revoked is taken out, and others may say it", () => {
  const ask = opened();
  ask([run("1", 30n), { ...run("1", 40n, 300n), by: 9n }, run("2", 20n), start("3")]);
  const revoked = ["1", "2", "3"].map((job) => ({ kind: "revoked", job, by: 9n }) as const);
  expect(ask(revoked)).toMatchObject({
    ...{ live: 20n, reserved: 60n },
    results: [{ known: false }, { known: true }, { known: true }],
  });
  expect(ask([run("1", 31n)]).live).toBe(51n);
});

test("what is reserved counts for the starts of others, and stops nobody who runs", () => {
  const ask = opened();
  const own = figures({ startBound: 100n, runBound: 50n });
  const first = ask([start("1", 99n), start("2", 1n), start("3", 1n)], { figures: own });
  expect(first.results.map(({ allowed }) => allowed)).toEqual([true, true, false]);
  expect(first).toMatchObject({ live: 0n, reserved: 100n });
  const second = ask([run("1", 50n), start("2", 1n)], { figures: own });
  expect(second.results).toEqual([
    { allowed: true, known: true },
    { allowed: true, known: true },
  ]);
  expect(second).toMatchObject({ live: 50n, reserved: 50n });
  expect(ask([run("1", 51n)], { figures: own }).results).toEqual([{ allowed: false, known: true }]);
});

test("a start that is asked again is the same reservation, and ends when the later of both does", () => {
  const ask = opened();
  ask([start("1", 60n, NOW + 10_000)]);
  expect(ask([start("1", 60n, NOW + 20_000)]).reserved).toBe(60n);
  expect(ask([start("1", 60n, NOW + 5_000)], { now: NOW + 4_000 }).reserved).toBe(60n);
  expect(ask([], { now: NOW + 19_999 }).reserved).toBe(60n);
  expect(ask([], { now: NOW + 20_000 }).reserved).toBe(0n);
});

test("a job that never ran stays gone, until it is heard to have run longer", () => {
  const ask = opened();
  ask([run("1", 30n), start("2", 60n)]);
  expect(ask([neverRan("1"), neverRan("2")])).toMatchObject({ live: 0n, reserved: 0n });
  expect(ask([run("1", 30n)], { inspect: true })).toMatchObject({
    live: 0n,
    jobs: [],
    results: [{ known: false }],
  });
  expect(ask([run("1", 31n), run("2", 1n)]).live).toBe(32n);
});

test("a job that never ran is brought back by no copy, even where nobody had heard of it", () => {
  const ask = opened();
  ask([run("1", 30n)]);
  ask([neverRan("1"), neverRan("2")]);
  const again = { ...run("1", 60n), offered: true } as const;
  const other = { ...run("2", 60n), offered: true } as const;
  expect(ask([again, other])).toMatchObject({
    live: 0n,
    results: [{ known: false }, { known: false }],
  });
  const later = { now: NOW + 24 * HOUR - 1, figures: figures({ until: NOW + 48 * HOUR }) };
  expect(ask([{ ...other, until: NOW + 48 * HOUR }], later).live).toBe(0n);
  expect(
    ask([run("1", 31n, 31n, NOW + 48 * HOUR), run("2", 1n, 1n, NOW + 48 * HOUR)], later).live,
  ).toBe(32n);
});

test("of jobs that nobody has heard of, so many are kept as gone that there is room for those that run", () => {
  const ask = opened();
  const ids = (from: number) => Array.from({ length: 15_000 }, (_, i) => String(from + i));
  ask(ids(0).map(neverRan));
  const { results } = ask(ids(20_000).map((id) => run(id, 1n)));
  expect(results.filter(({ known }) => known)).toHaveLength(10_000);
});

test("a command costs what it asks: no ask of it passes over all jobs", () => {
  const ask = opened();
  const jobs = Array.from({ length: 20_000 }, (_, i) => run(String(i), 1n));
  const before = process.cpuUsage();
  for (let i = 0; i < 3; i += 1) {
    ask(jobs);
    ask(Array.from({ length: 5_000 }, (_, n) => start(String(n), 1n)));
  }
  // A pass for each ask is some billion steps. Of this process alone: what else the machine does is not measured.
  const { system, user } = process.cpuUsage(before);
  expect((system + user) / 1_000).toBeLessThan(5_000);
});

test("a job that was silent for ever counts until its time is over, and not after", () => {
  const ask = opened();
  ask([run("1", 30n, 30n, NOW + HOUR)]);
  expect(ask([], { now: NOW + HOUR - 1 }).live).toBe(30n);
  expect(ask([], { now: NOW + HOUR }).live).toBe(0n);
  expect(ask([run("1", 40n, 40n, NOW + HOUR)], { now: NOW + HOUR }).results).toEqual([
    { allowed: true, known: false },
  ]);
});

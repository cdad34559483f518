/** The quota by cases that went wrong elsewhere, and by those that GitLab publishes. */
import { expect, test } from "vitest";
import { charge, computeMinutes, MINUTE, signedComputeMinutes } from "../../../src/core/charge.ts";
import {
  type LimitFact,
  type PackFact,
  type QuotaFacts,
  quotaAt,
  remaining,
} from "../../../src/core/quota/quota.ts";
import { computeMs, milliseconds } from "../../../src/core/unit.ts";

const YEAR = "2026";

function limited(monthly_minutes: bigint, more: Partial<LimitFact> = {}): LimitFact {
  return {
    index: 1n,
    at: `${YEAR}-01-01T00:00:00.000Z`,
    effective_from: `${YEAR}-01-01T00:00:00.000Z`,
    monthly_minutes,
    beyond: "stop",
    cap: undefined,
    grace_minutes: 1_000n,
    ...more,
  };
}

function bought(minutes: bigint, more: Partial<PackFact> = {}): PackFact {
  return {
    index: 2n,
    pack: "portal\norder-1",
    minutes,
    purchased_in: `${YEAR}-04-01`,
    expires_in: "2027-03-01",
    source_version: 1n,
    ...more,
  };
}

/** Minutes used, by month. */
function facts(
  limits: readonly LimitFact[],
  packs: readonly PackFact[] = [],
  used: Record<string, bigint> = {},
): QuotaFacts {
  const months = Object.entries(used);
  return {
    platform: "dotcom",
    limits,
    packs,
    closings: [],
    used: new Map(months.map(([month, minutes]) => [month, computeMs(minutes * MINUTE)])),
  };
}

const APRIL = `${YEAR}-04-20T12:00:00.000Z`;
const MAY = `${YEAR}-05-01T00:00:00.000Z`;
const availableMinutes = (of: QuotaFacts, at: string) =>
  signedComputeMinutes(quotaAt(of, at).available);

test("GitLab's published example: of 5,000 bought in April 2,000 are left in May, 12,000 in all", () => {
  const used = { [`${YEAR}-04-01`]: 13_000n };
  const namespace = facts([limited(10_000n)], [bought(5_000n)], used);
  expect(availableMinutes(namespace, APRIL)).toBe("2000.0000");
  const may = quotaAt(namespace, MAY);
  const [pack] = may.packs;
  expect(pack && pack.capacity - pack.drawnBefore).toBe(2_000n * MINUTE);
  expect(may.available).toBe(12_000n * MINUTE);
});

test("T28, G13: on the first of a month nothing is used, what was bought is carried over, the rest is not", () => {
  const used = { [`${YEAR}-04-01`]: 100n };
  const namespace = facts([limited(400n)], [bought(1_000n)], used);
  expect(availableMinutes(namespace, APRIL)).toBe("1300.0000");
  expect(availableMinutes(namespace, MAY)).toBe("1400.0000");
  expect(quotaAt(namespace, MAY).used).toBe(0n);
});

test("G12: use, draws and what is left go together in every month, also where a month had no use", () => {
  const used = { [`${YEAR}-04-01`]: 500n, [`${YEAR}-07-01`]: 700n };
  const namespace = facts([limited(400n)], [bought(1_000n)], used);
  const left = [4, 5, 6, 7, 8].map((month) =>
    availableMinutes(namespace, `${YEAR}-0${month}-28T00:00:00.000Z`),
  );
  expect(left).toEqual(["900.0000", "1300.0000", "1300.0000", "600.0000", "1000.0000"]);
});

test("G17: buying minutes leaves the monthly limit as it is", () => {
  const namespace = facts([limited(50_000n)], [bought(1_000n)]);
  expect(quotaAt(namespace, APRIL).limit?.monthly_minutes).toBe(50_000n);
  expect(availableMinutes(namespace, APRIL)).toBe("51000.0000");
});

test("G24: what is shown of packs is what is left of them, and an expired one is not shown", () => {
  const old = bought(3_000n, { pack: "portal\nold", expires_in: `${YEAR}-04-01` });
  const used = { [`${YEAR}-04-01`]: 2_400n };
  const namespace = facts([limited(400n)], [bought(5_000n, { index: 3n }), old], used);
  const drawn = quotaAt(namespace, APRIL).packs.map(({ pack, drawn }) => [pack, drawn / MINUTE]);
  expect(drawn).toEqual([
    ["portal\nold", 2_000n],
    ["portal\norder-1", 0n],
  ]);
  const may = quotaAt(namespace, MAY);
  expect(may.packs.map(({ pack }) => pack)).toEqual(["portal\norder-1"]);
  expect(may.available).toBe(5_400n * MINUTE);
});

test("T21, T22: the last instant of a month is its own, and midnight is the next month's", () => {
  const used = { [`${YEAR}-01-01`]: 300n, [`${YEAR}-02-01`]: 5n };
  const namespace = facts([limited(400n)], [], used);
  const last = quotaAt(namespace, `${YEAR}-01-31T23:59:59.999Z`);
  const first = quotaAt(namespace, `${YEAR}-02-01T00:00:00.000Z`);
  expect([last.month, last.used / MINUTE, last.available / MINUTE]).toEqual([
    `${YEAR}-01-01`,
    300n,
    100n,
  ]);
  expect([first.month, first.used / MINUTE, first.available / MINUTE]).toEqual([
    `${YEAR}-02-01`,
    5n,
    395n,
  ]);
  expect(last.until).toBe(first.from);
  expect(last.until).toBe(Date.UTC(2026, 1));
});

test("T29, T30: 100,000 builds at 0.008 and 300,000 minutes at a share leave exactly what they should", () => {
  const one = charge(milliseconds(60_000n), { n: 1n, d: 125n });
  const builds = computeMs(one * 100_000n);
  const share = charge(milliseconds(300_000n * 60_000n), { n: 10_000n, d: 300_000n });
  const month = `${YEAR}-04-01`;
  const of = (used: typeof one) => ({
    ...facts([limited(10_000n)]),
    used: new Map([[month, used]]),
  });
  expect(availableMinutes(of(builds), APRIL)).toBe("9200.0000");
  expect(quotaAt(of(share), APRIL).available).toBe(0n);
});

test("T32: a billion hours at factor 12 are subtracted to the last digit", () => {
  const used = computeMs(12n * 3_600_000n * 1_000_000_000n * 1_000_000n + 1n);
  const namespace = {
    ...facts([limited(720_000_000_000n)]),
    used: new Map([[MAY.slice(0, 10), used]]),
  };
  expect(quotaAt(namespace, MAY).available).toBe(-1n);
});

test("T34: 99.999996 of 100 minutes used shows as 100, and one more may start", () => {
  const used = computeMs(100n * MINUTE - 240_000n);
  const namespace = { ...facts([limited(100n)]), used: new Map([[MAY.slice(0, 10), used]]) };
  expect(computeMinutes(used)).toBe("100.0000");
  const { startBound = 0n } = quotaAt(namespace, MAY);
  expect(startBound > 0n).toBe(true);
  expect(startBound > 240_000n).toBe(false);
});

test("T43: a raise that was announced gives the difference from its own instant on, and not before", () => {
  const used = { [`${YEAR}-04-01`]: 400n };
  const raise = limited(500n, { index: 9n, effective_from: APRIL });
  const before = facts([limited(400n)], [], used);
  const after = facts([limited(400n), raise], [], used);
  expect(quotaAt(before, APRIL).startBound).toBe(0n);
  expect(quotaAt(after, APRIL).startBound).toBe(100n * MINUTE);
  const sooner = quotaAt(after, `${YEAR}-04-20T11:59:59.999Z`);
  expect([sooner.startBound, sooner.until]).toEqual([0n, Date.parse(APRIL)]);
});

test("a limit that holds at once holds for a clock that is behind the log's, in its month and not before it", () => {
  const [at, effective_from] = [APRIL, `${YEAR}-04-20T12:00:00.001Z`];
  const limits = [limited(400n), limited(500n, { index: 9n, at, effective_from })];
  const inForce = (of: readonly LimitFact[], month: string) => {
    const { limit, from, until } = quotaAt(facts(of), `${YEAR}-${month}-02T00:00:00.000Z`);
    return [limit?.index, from, until];
  };
  const [march, april, may] = [Date.UTC(2026, 2), Date.UTC(2026, 3), Date.UTC(2026, 4)];
  expect(inForce(limits, "03")).toEqual([1n, march, april]);
  expect(inForce(limits, "04")).toEqual([9n, april, may]);
  // A first limit above all: without it there would be none.
  expect(inForce([limited(500n, { at, effective_from: at })], "04")).toEqual([1n, april, may]);
});

test("a limit that an entry announced and a later entry took back never comes into force", () => {
  const announced = limited(0n, { index: 5n, effective_from: MAY });
  const takenBack = limited(400n, { index: 6n, at: APRIL, effective_from: APRIL });
  const namespace = facts([limited(400n), announced, takenBack]);
  const april = quotaAt(namespace, APRIL);
  expect([april.limit?.index, april.until]).toEqual([6n, Date.parse(MAY)]);
  expect(quotaAt(namespace, `${YEAR}-05-20T00:00:00.000Z`).limit?.index).toBe(6n);
});

test("where nobody said anything there is no limit, and with a pack alone the pack is all there is", () => {
  expect(quotaAt(facts([]), APRIL)).toMatchObject({
    limit: undefined,
    beyond: "stop",
    unlimited: true,
    startBound: undefined,
    runBound: undefined,
  });
  const packed = quotaAt(facts([], [bought(10n)], { [`${YEAR}-04-01`]: 4n }), APRIL);
  expect(packed).toMatchObject({ unlimited: false, startBound: 6n * MINUTE });
  expect(packed.runBound).toBe(1_006n * MINUTE);
});

test("a pack that is used up keeps its namespace limited until it expires", () => {
  const used = { [`${YEAR}-04-01`]: 10n };
  const namespace = facts([limited(0n)], [bought(10n)], used);
  expect(quotaAt(namespace, MAY)).toMatchObject({ unlimited: false, startBound: 0n });
  expect(quotaAt(namespace, "2027-03-31T23:59:59.999Z").unlimited).toBe(false);
  expect(quotaAt(namespace, "2027-04-01T00:00:00.000Z").unlimited).toBe(true);
});

test("a pack that is taken back after it was drawn on has nothing left, and owes nothing", () => {
  const used = { [`${YEAR}-04-01`]: 1_400n };
  const back = bought(0n, { index: 7n, source_version: 2n });
  const smaller = bought(500n, { index: 7n, source_version: 2n });
  const limits = [limited(400n)];
  expect(availableMinutes(facts(limits, [bought(5_000n), back], used), MAY)).toBe("400.0000");
  expect(availableMinutes(facts(limits, [bought(5_000n), smaller], used), MAY)).toBe("400.0000");
});

test("a pack taken back after a month was closed keeps what it gave there, and has nothing afterwards", () => {
  const used = { [`${YEAR}-04-01`]: 1_400n };
  const back = bought(500n, { index: 7n, source_version: 2n });
  const open = facts([limited(400n)], [bought(5_000n), back], used);
  const closed = { ...open, closings: [{ index: 5n, month: `${YEAR}-04-01` }] };
  const drawnIn = (of: QuotaFacts, at: string) =>
    quotaAt(of, at).packs.map(({ index, drawn, drawnBefore }) => [
      index,
      drawn / MINUTE,
      drawnBefore / MINUTE,
    ]);
  expect(drawnIn(open, APRIL)).toEqual([[7n, 500n, 0n]]);
  expect(drawnIn(closed, APRIL)).toEqual([[2n, 1_000n, 0n]]);
  expect(drawnIn(closed, MAY)).toEqual([[7n, 0n, 1_000n]]);
  expect(quotaAt(closed, MAY).available).toBe(400n * MINUTE);
});

test("the first closing of a log cuts off the months before it too", () => {
  const raise = limited(900n, { index: 8n });
  const closings = [{ index: 5n, month: `${YEAR}-04-01` }];
  const namespace = { ...facts([limited(400n), raise]), closings };
  const minutes = ["02", "04", "05"].map(
    (month) => quotaAt(namespace, `${YEAR}-${month}-15T00:00:00.000Z`).limit?.monthly_minutes,
  );
  expect(minutes).toEqual([400n, 400n, 900n]);
});

test("of two packs the one that expires first is drawn first, and else the one that came first", () => {
  const one = bought(10n, { pack: "portal\none", index: 2n });
  const two = bought(10n, { pack: "portal\ntwo", index: 3n });
  const soon = bought(10n, { pack: "portal\nsoon", index: 4n, expires_in: `${YEAR}-05-01` });
  const again = bought(20n, { ...one, index: 5n, minutes: 20n, source_version: 2n });
  const used = { [`${YEAR}-04-01`]: 35n };
  const drawn = quotaAt(facts([limited(0n)], [one, two, soon, again], used), APRIL).packs;
  expect(drawn.map(({ pack, drawn }) => [pack.slice(7), drawn / MINUTE])).toEqual([
    ["soon", 10n],
    ["one", 20n],
    ["two", 5n],
  ]);
});

test("with `bill` the cap bounds starts and running jobs alike, and grace adds nothing", () => {
  const used = { [`${YEAR}-04-01`]: 400n };
  const capped = limited(400n, { beyond: "bill", cap: 50n });
  expect(quotaAt(facts([capped], [], used), APRIL)).toMatchObject({
    startBound: 50n * MINUTE,
    runBound: 50n * MINUTE,
  });
  const uncapped = quotaAt(facts([limited(400n, { beyond: "bill" })], [], used), APRIL);
  expect(uncapped).toMatchObject({ startBound: undefined, runBound: undefined, available: 0n });
});

test("what is live is subtracted from what is available, and the difference may be below zero", () => {
  const quota = quotaAt(facts([limited(10n)], [], { [`${YEAR}-04-01`]: 4n }), APRIL);
  expect(remaining(quota, 5n * MINUTE)).toBe(MINUTE);
  expect(signedComputeMinutes(remaining(quota, 8n * MINUTE))).toBe("-2.0000");
});

test("what was taken back beyond what is posted to a month is nothing used, and draws and gives nothing", () => {
  const [april, may] = [`${YEAR}-04-01`, `${YEAR}-05-01`];
  const namespace = facts([limited(10n)], [bought(5n)]);
  const used = new Map([
    [april, -3n * MINUTE],
    [may, 12n * MINUTE],
  ]);
  expect(quotaAt({ ...namespace, used }, APRIL)).toMatchObject({
    used: 0n,
    available: 15n * MINUTE,
  });
  expect(quotaAt({ ...namespace, used }, MAY)).toMatchObject({ available: 3n * MINUTE });
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { formatSignedComputeMs } from "../../../src/core/charge.ts";
import {
  type AckMonth,
  compared,
  countedIn,
  differencesIn,
  judgeAck,
  type Standing,
  type Sum,
} from "../../../src/core/feed/acknowledgement.ts";
import { Problem } from "../../../src/core/problem.ts";
import { History } from "../history.ts";

const MONTHS = ["2026-09-01", "2026-10-01", "2026-11-01"] as const;
const sum = (events: bigint, computeMs: bigint): Sum => ({ events, computeMs });

test("what a consumer states stands beside what is counted, of each month that either has, in their order", () => {
  const stated = [
    { billing_month: "2026-11-01", compute_ms: "2.000000", events: "2" },
    { billing_month: "2026-09-01", compute_ms: "1.000000", events: "1" },
  ];
  const counted = new Map([
    ["2026-11-01", sum(2n, 2_000_001n)],
    ["2026-10-01", sum(1n, -5n)],
  ]);
  const months = compared(stated, counted);
  expect(months.map((month) => Object.values(month))).toEqual([
    ["2026-09-01", "1.000000", "0.000000", "0", "1"],
    ["2026-10-01", "0.000000", "-0.000005", "1", "0"],
    ["2026-11-01", "2.000000", "2.000001", "2", "2"],
  ]);
  expect(differencesIn(months)).toEqual(
    new Map([
      ["2026-09-01", sum(1n, 1_000_000n)],
      ["2026-10-01", sum(-1n, 5n)],
      ["2026-11-01", sum(0n, -1n)],
    ]),
  );
  const body = { by: "p", consumer: "c", months, salt: "", up_to: "1" };
  expect(countedIn(body)).toEqual(new Map([...counted, ["2026-09-01", sum(0n, 0n)]]));
});

function ackOf(differences: ReadonlyMap<string, Sum>): AckMonth[] {
  return [...differences].map(([billing_month, { computeMs, events }]) => ({
    billing_month,
    compute_ms: formatSignedComputeMs(1_000n + computeMs),
    counted_compute_ms: formatSignedComputeMs(1_000n),
    counted_events: "10",
    events: String(10n + events),
  }));
}

test("a difference is told exactly, and in whole milliseconds as far as a column holds them", () => {
  const judged = (computeMs: bigint) => {
    const months = ackOf(new Map([["2026-11-01", sum(-3n, computeMs)]]));
    return judgeAck(7n, months, [], []).opened[0];
  };
  expect(judged(-1_999_999n)).toEqual({
    about: { ack: "7", billing_month: "2026-11-01" },
    code: "portal-difference",
    detail: "events -3, compute_ms -1.999999",
    difference_ms: -1n,
    month: "2026-11-01",
    tracking: "hosted",
  });
  expect(judged(10n ** 30n)).toMatchObject({
    detail: `events -3, compute_ms ${10n ** 24n}.000000`,
    difference_ms: 2n ** 63n - 1n,
  });
  expect(judged(-(10n ** 30n))?.difference_ms).toBe(-(2n ** 63n - 1n));
});

/** Of each month: no difference, or one of two; and after the acknowledgement persons may end a break. */
const step = fc.record({
  differs: fc.tuple(...MONTHS.map(() => fc.constantFrom(0, 0, 1, 2))),
  decided: fc.tuple(...MONTHS.map(() => fc.constantFrom("", "", "accepted", "corrected"))),
});

interface Break extends Omit<Standing, "state"> {
  state: Standing["state"];
  of: number;
}

test("after each acknowledgement a month has an open break exactly if it differs and persons did not accept just that", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const newest = new Map<string, Break>();
      let before: AckMonth[] = [];
      let index = 0n;
      for (const { decided, differs } of steps) {
        const months = ackOf(
          new Map(MONTHS.map((month, i) => [month, sum(BigInt(differs[i] ?? 0), 0n)])),
        );
        const { ended, opened } = judgeAck(index, months, before, [...newest.values()]);
        const was = new Map([...newest].map(([month, each]) => [month, { ...each }]));
        for (const each of newest.values()) {
          if (!ended.includes(each.index)) continue;
          expect(each.state).toBe("open");
          each.state = "healed";
        }
        for (const { month } of opened) {
          expect(newest.get(month)?.state).not.toBe("open");
          const of = differs[MONTHS.indexOf(month as never)] ?? 0;
          index += 1n;
          newest.set(month, { index, month, of, state: "open" });
        }
        for (const [i, month] of MONTHS.entries()) {
          const [now, old] = [newest.get(month), was.get(month)];
          // The oracle: persons accepted the break that stands for this difference, and it was there all the time.
          const accepted = old?.state === "accepted" && old.of === differs[i];
          const unbroken =
            before.length > 0 &&
            differencesIn(before).get(month)?.events === BigInt(differs[i] ?? 0);
          expect(now?.state === "open").toBe(differs[i] !== 0 && !(accepted && unbroken));
          if (now?.state === "open") expect(now.of).toBe(differs[i]);
          if (now?.state === "open" && decided[i]) now.state = decided[i] as Break["state"];
        }
        before = months;
        index += 1n;
      }
    }),
    { numRuns: 300 },
  );
});

test("a difference that goes on opens nothing, one that changes ends its break and opens another, one that is gone ends it", () => {
  const of = (n: bigint) => ackOf(n === 0n ? new Map() : new Map([["2026-11-01", sum(n, 0n)]]));
  const open = [{ index: 5n, month: "2026-11-01", state: "open" }] as const;
  expect(judgeAck(9n, of(1n), of(1n), open)).toEqual({ ended: [], opened: [] });
  expect(judgeAck(9n, of(2n), of(1n), open)).toMatchObject({ ended: [5n], opened: [{}] });
  expect(judgeAck(9n, of(0n), of(1n), open)).toEqual({ ended: [5n], opened: [] });
  const corrected = [{ index: 5n, month: "2026-11-01", state: "corrected" }] as const;
  expect(judgeAck(9n, of(1n), of(1n), corrected)).toMatchObject({ ended: [], opened: [{}] });
});

test("months that do not ascend, and a month that has not begun and has no events, are not admitted", () => {
  const told = (...months: (Partial<AckMonth> & { billing_month: string })[]): string => {
    const none = { compute_ms: "0.000000", counted_compute_ms: "0.000000" };
    const body = {
      ...{ by: "p", consumer: "portal", salt: "AAAAAAAAAAAAAAAAAAAAAA==", up_to: "1" },
      months: months.map((each) => ({ ...none, counted_events: "0", events: "0", ...each })),
    };
    try {
      new History().write("feed_ack", body);
      return "admitted";
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return error.code;
    }
  };
  const [september, october, november] = MONTHS.map((billing_month) => ({ billing_month }));
  if (!september || !october || !november) throw new Error("no months");
  expect(told(september, october, november)).toBe("admitted");
  expect(told(october, september)).toBe("invalid-request");
  expect(told(october, october)).toBe("invalid-request");
  const december = { billing_month: "2026-12-01" };
  expect(told(november, december)).toBe("unknown-month");
  // Builds of a host whose clock is ahead, within the skew.
  expect(told(november, { ...december, counted_events: "1" })).toBe("admitted");
});

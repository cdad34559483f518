import fc from "fast-check";
import { expect, test } from "vitest";
import {
  ANOMALY_BOUNDS,
  clockOffset,
  counterGap,
  gapOf,
  overCapacity,
  overTimeout,
  silence,
  suddenJump,
} from "../../src/core/anomaly.ts";
import { breakBody, fingerprint } from "../../src/core/break.ts";
import { MINUTE } from "../../src/core/charge.ts";
import { BODY } from "../../src/core/entry.ts";

const HOUR_MS = 3_600_000n;
const DAY_MS = 86_400_000;
const SALT = "AAAAAAAAAAAAAAAAAAAAAA==";
const ms = (minutes: bigint): string => `${minutes * 60_000n}.000000`;
const day = { namespace_id: "7", day: "2026-11-20", days_before: 7n };

test("a job that ran for longer than any may is an anomaly from the first millisecond on", () => {
  const job = {
    index: 4n,
    job_id: "1",
    namespace_id: "7",
    runner_id: "700",
    usage_month: "2026-11-01",
  };
  const bound = ANOMALY_BOUNDS.timeout_ms;
  expect(overTimeout({ ...job, duration_ms: bound }, ANOMALY_BOUNDS)).toEqual([]);
  const [finding] = overTimeout({ ...job, duration_ms: bound + 1n }, ANOMALY_BOUNDS);
  expect(finding).toMatchObject({ code: "over-timeout", difference_ms: 1n, usage: 4n });
});

test("no runner has more job time in an hour than its jobs at once, said or learnt", () => {
  const hour = {
    hours_before: 24n,
    runner_id: "700",
    hour: "2026-11-20T11:00:00.000Z",
    before_ms: 0n,
  };
  const said = { ...ANOMALY_BOUNDS, capacity: new Map([["700", 3n]]) };
  expect(overCapacity({ ...hour, duration_ms: 3n * HOUR_MS }, said)).toEqual([]);
  expect(overCapacity({ ...hour, duration_ms: 3n * HOUR_MS + 1n }, said)).toHaveLength(1);
  // Nothing is known of it, and then that it had a job and a half.
  expect(overCapacity({ ...hour, duration_ms: 90n * HOUR_MS }, ANOMALY_BOUNDS)).toEqual([]);
  const learnt = { ...hour, before_ms: (3n * HOUR_MS) / 2n };
  expect(overCapacity({ ...learnt, duration_ms: 4n * HOUR_MS }, ANOMALY_BOUNDS)).toEqual([]);
  expect(overCapacity({ ...learnt, duration_ms: 4n * HOUR_MS + 1n }, ANOMALY_BOUNDS)).toHaveLength(
    1,
  );
});

test("a day is a jump beyond ten times the mean of the 28 before and beyond the floor, exactly", () => {
  const before = ms(28n * 1_001n);
  expect(suddenJump({ ...day, amount: ms(10_010n), before }, ANOMALY_BOUNDS)).toEqual([]);
  const above = suddenJump({ ...day, amount: "600600000.000001", before }, ANOMALY_BOUNDS);
  expect(above).toMatchObject([{ code: "sudden-jump", month: "2026-11-01" }]);
  expect(suddenJump({ ...day, amount: ms(10_000n), before: ms(0n) }, ANOMALY_BOUNDS)).toEqual([]);
  expect(suddenJump({ ...day, amount: ms(10_001n), before: ms(0n) }, ANOMALY_BOUNDS)).toHaveLength(
    1,
  );
});

test("from a history that is not there nothing is learnt", () => {
  const jump = { ...day, amount: ms(1_000_000n), before: ms(0n) };
  expect(suddenJump({ ...jump, days_before: 6n }, ANOMALY_BOUNDS)).toEqual([]);
  const busy = { runner_id: "700", hour: "2026-11-20T11:00:00.000Z", before_ms: HOUR_MS };
  const ramp = { ...busy, duration_ms: 90n * HOUR_MS };
  expect(overCapacity({ ...ramp, hours_before: 23n }, ANOMALY_BOUNDS)).toEqual([]);
  expect(overCapacity({ ...ramp, hours_before: 24n }, ANOMALY_BOUNDS)).toHaveLength(1);
});

test("a jump is what the rational mean says, for any amounts", () => {
  const minutes = fc.bigInt(0n, 1_000_000n);
  fc.assert(
    fc.property(minutes, minutes, (used, earlier) => {
      const found = suddenJump({ ...day, amount: ms(used), before: ms(earlier) }, ANOMALY_BOUNDS);
      const oracle = used * MINUTE * 28n > earlier * MINUTE * 10n && used > 10_000n;
      expect(found.length === 1).toBe(oracle);
    }),
  );
});

test("a clock is off once a day, either way", () => {
  const attested = { kid: "k", at: "2026-11-20T12:00:00.000Z" };
  const off = (offset_ms: bigint) => clockOffset({ ...attested, offset_ms }, ANOMALY_BOUNDS);
  expect([off(60_000n), off(-60_000n)]).toEqual([[], []]);
  const [ahead, behind] = [...off(60_001n), ...off(-60_001n)];
  if (ahead === undefined || behind === undefined) throw new Error("no finding");
  expect(fingerprint(ahead)).toBe(fingerprint(behind));
});

test("G25: counters that never come are a gap when the grace is over, unless the last of them came", () => {
  const gap = { kid: "k", first: 3n, last: 9n, missing: 2n, since: 0 };
  expect(counterGap(gap, DAY_MS - 1, DAY_MS)).toEqual([]);
  expect(counterGap({ ...gap, missing: 0n }, DAY_MS, DAY_MS)).toEqual([]);
  const [found] = counterGap(gap, DAY_MS, DAY_MS);
  expect(found).toMatchObject({ code: "counter-gap", kid: "k" });
  if (found === undefined) throw new Error("no finding");
  const body = breakBody(found, SALT);
  expect(gapOf(body)).toEqual({ first: 3n, last: 9n });
  for (const said of ["4 to 9", "3 to 2", "3 to "]) {
    expect(gapOf({ ...body, detail: `2 of counters ${said} have not come` })).toBeUndefined();
  }
});

test("silence is a finding when the grace is over, and of a key that was never heard there is none", () => {
  const at = (now: number) => silence("missing-attestation", "k", 0, { now, grace_ms: DAY_MS });
  expect([at(DAY_MS - 1).length, at(DAY_MS).length]).toEqual([0, 1]);
  expect(silence("undelivered", "k", undefined, { now: DAY_MS, grace_ms: 0 })).toEqual([]);
});

test("what is found makes the body of an entry, and other words for it make no other break", () => {
  const [finding] = silence("undelivered", "k", 0, { now: DAY_MS, grace_ms: 0 });
  if (finding === undefined) throw new Error("no finding");
  const body = breakBody(finding, SALT);
  expect(BODY.break.parse(body)).toEqual(body);
  expect(breakBody({ ...finding, detail: "said otherwise" }, SALT).fingerprint).toBe(
    body.fingerprint,
  );
  expect(fingerprint({ ...finding, code: "missing-attestation" })).not.toBe(body.fingerprint);
});

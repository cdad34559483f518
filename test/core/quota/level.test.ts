import fc from "fast-check";
import { expect, test } from "vitest";
import { MINUTE } from "../../../src/core/charge.ts";
import { eventOf, QuotaEvent } from "../../../src/core/quota/event.ts";
import { LEVELS, levelOf } from "../../../src/core/quota/level.ts";
import { type QuotaFacts, quotaAt } from "../../../src/core/quota/quota.ts";
import { computeMs } from "../../../src/core/unit.ts";

const AT = "2026-11-20T12:00:00.000Z";
const MONTH = "2026-11-01";

/** A namespace that used so much of so many minutes a month, and has a pack of so many besides. */
function factsOf(used: bigint, limit: bigint, pack = 0n): QuotaFacts {
  const since = { at: AT, effective_from: "2026-01-01T00:00:00.000Z", index: 1n };
  const rest = { beyond: "stop", cap: undefined, grace_minutes: 1_000n } as const;
  const validity = { purchased_in: MONTH, expires_in: "2027-10-01" };
  return {
    platform: "dotcom",
    limits: [{ ...since, ...rest, monthly_minutes: limit }],
    packs: [{ index: 2n, pack: "portal\n1", minutes: pack, source_version: 1n, ...validity }],
    closings: [],
    used: new Map([[MONTH, computeMs(used)]]),
  };
}

const level = (...facts: Parameters<typeof factsOf>) => levelOf(quotaAt(factsOf(...facts), AT));

test("a level begins exactly below a quarter, exactly below a twentieth, and exactly at nothing", () => {
  const whole = 400n * MINUTE;
  expect(level(0n, 400n)).toBe("none");
  expect(level((whole / 4n) * 3n, 400n)).toBe("none");
  expect(level((whole / 4n) * 3n + 1n, 400n)).toBe("warning");
  expect(level((whole / 20n) * 19n, 400n)).toBe("warning");
  expect(level((whole / 20n) * 19n + 1n, 400n)).toBe("danger");
  expect(level(whole - 1n, 400n)).toBe("danger");
  expect(level(whole, 400n)).toBe("exceeded");
  expect(level(2n * whole, 400n)).toBe("exceeded");
});

test("what packs had left when the month began counts like the limit, also after it is drawn", () => {
  expect(level(300n * MINUTE, 200n, 200n)).toBe("none");
  expect(level(300n * MINUTE + 1n, 200n, 200n)).toBe("warning");
  expect(level(400n * MINUTE, 200n, 200n)).toBe("exceeded");
});

test("who cannot run out, and Dedicated, are at no level", () => {
  expect(level(10n ** 30n, 0n)).toBe("none");
  const dedicated = { ...factsOf(500n * MINUTE, 400n), platform: "dedicated" as const };
  expect(levelOf(quotaAt(dedicated, AT))).toBe("none");
});

test("more usage never brings a namespace farther from the end, and a higher limit never nearer", () => {
  const amount = fc.bigInt({ min: 0n, max: 1_000n * MINUTE });
  const minutes = fc.bigInt({ min: 1n, max: 900n });
  fc.assert(
    fc.property(amount, amount, minutes, minutes, (used, more, limit, raise) => {
      const rank = LEVELS.indexOf(level(used, limit));
      expect(LEVELS.indexOf(level(used + more, limit))).toBeGreaterThanOrEqual(rank);
      expect(LEVELS.indexOf(level(used, limit + raise))).toBeLessThanOrEqual(rank);
    }),
  );
});

const SEEN = { log: "a".repeat(32), namespace: "7", asOf: 12n, at: AT };

test("one event for one change, named by the level that it reaches; a farther one is a recovery", () => {
  const quota = quotaAt(factsOf(500n * MINUTE, 400n), AT);
  for (const from of LEVELS) {
    for (const to of LEVELS) {
      const event = eventOf(SEEN, quota, { from, to });
      const steps = LEVELS.indexOf(to) - LEVELS.indexOf(from);
      const type = steps === 0 ? undefined : steps < 0 ? "quota.recovered" : `quota.${to}`;
      expect(event?.type).toBe(type);
      if (event !== undefined) expect(QuotaEvent.parse(event)).toEqual(event);
    }
  }
});

test("an event says what is left, exactly and rounded, as of which entry; and nothing of what cannot run out", () => {
  const short = quotaAt(factsOf(401n * MINUTE + 1n, 400n), AT);
  expect(eventOf(SEEN, short, { from: "none", to: "exceeded" })).toEqual({
    type: "quota.exceeded",
    timestamp: AT,
    data: {
      log: SEEN.log,
      namespace_id: "7",
      month: MONTH,
      level: "exceeded",
      unlimited: false,
      remaining_compute_ms: "-60000.000001",
      remaining_minutes: "-1.0000",
      limit_minutes: "400",
      as_of: "12",
    },
  });
  const event = eventOf(SEEN, quotaAt(factsOf(MINUTE, 0n), AT), { from: "danger", to: "none" });
  expect(event?.data).toMatchObject({ unlimited: true, limit_minutes: "0" });
  expect(event?.data).not.toHaveProperty("remaining_minutes");
});

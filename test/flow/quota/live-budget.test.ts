import fc from "fast-check";
import { expect, test } from "vitest";
import { LiveBudget } from "../../../src/flow/quota/live-budget.ts";

const NOW = 1_800_000_000_000;
const TEN_MINUTES = 600_000;
const job = (id: number, namespace = "7") => ({ job: String(id), namespace });

test("a key speaks for 5,000 jobs within ten minutes, again and again, and for no other", () => {
  const budget = new LiveBudget();
  for (let beat = 0; beat < 3; beat += 1) {
    for (let id = 0; id < 5_000; id += 1) {
      expect(budget.takes("kid", job(id), NOW + beat * 30_000)).toBe(true);
    }
    expect(budget.takes("kid", job(5_000), NOW + beat * 30_000)).toBe(false);
  }
  expect(budget.takes("kid", job(5_000), NOW + 60_000 + TEN_MINUTES)).toBe(true);
});

test("one job in another namespace is another job, and one key's jobs are not another's", () => {
  const budget = new LiveBudget(1);
  expect(budget.takes("kid", job(1), NOW)).toBe(true);
  expect(budget.takes("kid", job(1, "8"), NOW)).toBe(false);
  expect(budget.takes("other", job(1, "8"), NOW)).toBe(true);
});

test("whatever is said, a job is taken iff fewer than the bound were taken within ten minutes before, or it was one", () => {
  const said = fc.tuple(fc.constantFrom("a", "b"), fc.nat(6), fc.nat(200_000));
  fc.assert(
    fc.property(fc.array(said, { maxLength: 60 }), (all) => {
      const budget = new LiveBudget(3);
      const taken: { kid: string; id: number; at: number }[] = [];
      let now = NOW;
      for (const [kid, id, later] of all) {
        now += later;
        const recent = taken.filter((one) => one.kid === kid && one.at > now - TEN_MINUTES);
        const ids = new Set(recent.map((one) => one.id));
        const fits = ids.has(id) || ids.size < 3;
        expect(budget.takes(kid, job(id), now)).toBe(fits);
        if (fits) taken.push({ kid, id, at: now });
      }
    }),
    { numRuns: 500 },
  );
});

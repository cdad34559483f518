/** What another card would have charged, against a sum that is made build by build. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  formatSignedComputeMs,
  parseComputeMs,
  parseSignedComputeMs,
} from "../../src/core/charge.ts";
import { rate } from "../../src/core/rate.ts";
import { milliseconds, monthOf } from "../../src/core/unit.ts";
import {
  adjustmentsFor,
  chargeUnder,
  type Difference,
  Differences,
  ratesUnder,
} from "../../src/core/what-if.ts";
import { CARD, History, report as reportOf } from "./history.ts";

const PROPOSED = {
  not_billable: ["script_failure"],
  project_factors: { open_source: "0.25" },
  runner_factors: { small: "2", large: "1/3" },
  tracking: "hosted",
} as const;

const build = fc.record({
  duration: fc.bigInt({ min: 0n, max: 10n ** 9n }),
  machine: fc.constantFrom("small", "large", "trial"),
  namespace: fc.constantFrom("1", "9", "10"),
  reason: fc.constantFrom("", "script_failure", "runner_system_failure"),
  project: fc.constantFrom("50", "60"),
  finished: fc.constantFrom("2026-09-30T23:59:59.999Z", "2026-10-01T00:00:00.000Z"),
});

test("differences are those of rating every build by the card, in whatever parts they are summed", () => {
  const standing = new History();
  standing.card();
  standing.classify({ project_id: "60", class: "open_source" }, "2026-01-02T00:00:00.000Z");
  const other = new History();
  other.card({ ...PROPOSED, not_billable: [...PROPOSED.not_billable] });
  other.classify({ project_id: "60", class: "open_source" }, "2026-01-02T00:00:00.000Z");
  const rates = ratesUnder(standing.prefix, {
    ...PROPOSED,
    not_billable: [...PROPOSED.not_billable],
  });
  fc.assert(
    fc.property(fc.array(build, { maxLength: 40 }), fc.nat(40), (builds, cut) => {
      const naive = new Map<string, { stands: bigint; would: bigint; unrated: bigint }>();
      const parts = [new Differences(), new Differences()];
      for (const [i, one] of builds.entries()) {
        const { duration, finished: finished_at, machine, namespace, project, reason } = one;
        const report = reportOf({
          job: { root_namespace_id: namespace, project_id: project },
          usage: { duration_ms: String(duration), failure_reason: reason, finished_at },
        });
        const runner = { machine_type: machine, tracking: "hosted" } as const;
        const billed = (rating: ReturnType<typeof rate>): bigint => {
          return rating?.billable ? parseComputeMs(rating.compute_ms) : 0n;
        };
        const charged = billed(rate(standing.prefix, report, runner));
        const rated = { build: report, machine: runner, duration: milliseconds(duration), charged };
        const usage_month = monthOf(finished_at);
        const would = chargeUnder(rates, { ...rated, usage_month });
        parts[i < cut ? 0 : 1]?.add({ ...rated, usage_month }, would);

        const key = `${usage_month} ${namespace} ${machine}`;
        const sums = naive.get(key) ?? { stands: 0n, would: 0n, unrated: 0n };
        const again = rate(other.prefix, report, runner);
        naive.set(
          key,
          again === undefined
            ? { ...sums, unrated: sums.unrated + 1n }
            : { ...sums, stands: sums.stands + charged, would: sums.would + billed(again) },
        );
      }
      const all = new Differences();
      for (const part of parts) for (const row of part.rows()) all.merge(row);
      const rows = all.rows();
      for (const { machine_type, namespace_id, stands, unrated, usage_month, would } of rows) {
        const sums = naive.get(`${usage_month} ${namespace_id} ${machine_type}`);
        expect({ stands, unrated, would }).toEqual(sums);
      }
      expect(rows).toHaveLength(naive.size);
    }),
    { numRuns: 300 },
  );
});

test("a machine type that the card does not name is in no sum, and counted", () => {
  const { prefix } = new History();
  const sums = new Differences();
  const { tracking } = CARD;
  const rated = {
    build: reportOf(),
    machine: { machine_type: "trial", tracking },
    duration: milliseconds(60_000n),
    usage_month: "2026-10-01",
    charged: 5n,
  };
  const rates = ratesUnder(prefix, { ...PROPOSED, not_billable: [] });
  sums.add(rated, chargeUnder(rates, rated));
  expect(sums.rows()).toMatchObject([{ jobs: 1n, unrated: 1n, stands: 0n, would: 0n }]);
});

test("adjustments make up for all differences, a line for each namespace's month and 128 in an entry", () => {
  const row = fc.record({
    namespace_id: fc.nat(400).map(String),
    usage_month: fc.constantFrom("2026-08-01", "2026-09-01", "2026-10-01"),
    machine_type: fc.constantFrom("small", "large"),
    jobs: fc.constant(1n),
    unrated: fc.constant(0n),
    stands: fc.bigInt({ min: 0n, max: 3n }),
    would: fc.bigInt({ min: 0n, max: 3n }),
  });
  const posting = (month: string): string => (month < "2026-10-01" ? "2026-10-01" : month);
  fc.assert(
    fc.property(fc.array(row, { maxLength: 600 }), (rows: Difference[]) => {
      const parts = [...adjustmentsFor(rows, posting)];
      const sums = new Map<string, bigint>();
      for (const { namespace_id, stands, usage_month, would } of rows) {
        const key = `${namespace_id} ${usage_month}`;
        sums.set(key, (sums.get(key) ?? 0n) + would - stands);
      }
      for (const { billing_month, lines } of parts) {
        expect(lines.length > 0 && lines.length <= 128).toBe(true);
        for (const { amount, namespace_id, usage_month } of lines) {
          expect(posting(usage_month)).toBe(billing_month);
          const key = `${namespace_id} ${usage_month}`;
          expect(formatSignedComputeMs(sums.get(key) ?? 0n)).toBe(amount);
          sums.set(key, (sums.get(key) ?? 0n) - parseSignedComputeMs(amount));
        }
      }
      expect([...sums.values()].every((left) => left === 0n)).toBe(true);
    }),
    { numRuns: 200 },
  );
});

import fc from "fast-check";
import { expect, test } from "vitest";
import type { FindingCode } from "../../audit/finding.ts";
import { readFraction } from "../../audit/rating.ts";
import { decodeEntry } from "../../src/core/entry.ts";
import { parseFactor } from "../../src/core/factor.ts";
import { auditFiles, filesOf } from "./archive.ts";
import { card, LONG_AGO, limit, line, SALT, TestLog } from "./log.ts";

test("every factor that a card may name is the same number for both implementations", () => {
  const decimal = fc.tuple(fc.bigInt(0n, 999_999_999n), fc.stringMatching(/^[0-9]{1,9}$/));
  const fraction = fc.tuple(fc.bigInt(0n, 999_999_999n), fc.bigInt(0n, 999_999_999n));
  const text = fc.oneof(
    decimal.map(([whole, decimals]) => `${whole}.${decimals}`),
    fraction.map(([top, bottom]) => `${top}/${bottom}`),
    fc.bigInt(0n, 999_999_999n).map(String),
  );
  fc.assert(
    fc.property(text, (written) => {
      const theirs = parseFactor(written);
      const ours = readFraction(written);
      expect(ours === undefined).toBe(theirs === undefined);
      if (ours && theirs) expect(ours.top * theirs.d).toBe(theirs.n * ours.bottom);
    }),
  );
});

test("both hold a build for its rate that comes to more than a log holds of one", async () => {
  for (const [duration, kind] of [
    ["999999999999999", "usage"],
    ["1000000000000000", "hold"],
  ] as const) {
    const log = new TestLog(undefined, { duration_cap_ms: String(2n ** 63n - 1n) });
    log.write("rate_card", card({ runner_factors: { "*": "1000000" } }));
    log.submit(log.enrol(1, [line("runner-a")]), { duration });
    const last = decodeEntry(log.entries.at(-1) ?? new Uint8Array());
    expect(last).toMatchObject({ kind });
    const { findings } = await auditFiles(filesOf(log));
    expect([...findings.byCode.keys()]).toEqual([]);
  }
});

/** What may come between reports, and the reports, of a random history. */
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("report" as const),
      job: fc.integer({ min: 1, max: 9 }),
      project: fc.constantFrom("10", "11", "12"),
      namespace: fc.constantFrom("1", "2"),
      runner: fc.constantFrom("runner-a", "runner-b", "runner-c", "nobody"),
      duration: fc.oneof(
        fc.constantFrom("0", "1", "3", "5", "7", "2678400001"),
        fc.bigInt(0n, 2_000_000n).map(String),
      ),
      reason: fc.constantFrom("", "", "runner_system_failure", "script_failure"),
      day: fc.integer({ min: -400, max: 1 }),
      agent: fc.integer({ min: 0, max: 1 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("card" as const),
      factor: fc.constantFrom("0.008", "1/128", "2", "0"),
      hosted: fc.boolean(),
      ahead: fc.integer({ min: 1, max: 30 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("class" as const),
      project: fc.constantFrom("10", "11", "12"),
      class: fc.constantFrom("oss", "fork", "contribution", "standard"),
      ahead: fc.integer({ min: 1, max: 30 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("limit" as const),
      namespace: fc.constantFrom("1", "2"),
      minutes: fc.constantFrom("0", "400", "10000"),
      ahead: fc.integer({ min: 1, max: 30 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("close" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("wait" as const),
      days: fc.integer({ min: 0, max: 40 }),
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

const DAY = 86_400_000;

/** The history as an honest service writes it, judged and rated by the service's own implementation. */
function historyOf(steps: readonly Step[]): TestLog {
  const log = new TestLog(undefined, { billing_from: "2026-06-01T00:00:00.000Z" });
  log.write("rate_card", card());
  const agents = [
    log.enrol(2, [line("runner-a"), line("runner-b", { machine_type: "gpu" })]),
    log.enrol(3, [line("runner-c", { runner_type: "project", tracking: "self_managed" })], ["2"]),
  ];
  const by = { approval: "", by: "finance", salt: SALT };
  let version = 0;
  let closed = "";
  const ahead = (days: number): string => new Date(Date.parse(log.at) + days * DAY).toISOString();
  for (const said of steps) {
    if (said.kind === "wait") log.at = ahead(said.days);
    else if (said.kind === "card") {
      const tracking = said.hosted ? "hosted" : "self_managed";
      const first = log.prefix.cards(tracking).length === 0;
      const effective_from = first ? LONG_AGO : ahead(said.ahead);
      const runner_factors = { small: said.factor, "*": "3/7" };
      log.write("rate_card", card({ tracking, effective_from, runner_factors }));
    } else if (said.kind === "class") {
      const body = {
        class: said.class,
        effective_from: ahead(said.ahead),
        project_id: said.project,
      };
      log.write("project_class", { ...by, ...body, source: "s" });
    } else if (said.kind === "limit") {
      version += 1;
      const body = limit(said.namespace, said.minutes, String(version));
      log.write("quota", { ...body, effective_from: ahead(said.ahead) });
    } else if (said.kind === "close") {
      const month = closed === "" ? "2026-09-01" : log.prefix.postingMonth("2000-01-01");
      if (month >= log.at.slice(0, 7)) continue;
      log.write("month_closing", { ...by, month });
      closed = month;
    } else {
      const agent = agents[said.agent] ?? agents[0];
      const finished = ahead(said.day);
      const { duration, namespace, project, reason, runner: uuid } = said;
      const build = { duration, finished, job: String(said.job), namespace, project, reason, uuid };
      if (agent !== undefined) log.submit(agent, build);
    }
  }
  return log;
}

/** Months are cut off here for where usage is posted, and not closed: test/audit/month has the rest. */
const UNREADY: FindingCode[] = ["month-not-ready", "month-before"];

test("whatever the service judges and rates, the second implementation judges and rates the same", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60 }), async (steps) => {
      const log = historyOf(steps);
      const { findings, open } = await auditFiles(filesOf(log));
      expect([...findings.byCode.keys()].filter((code) => !UNREADY.includes(code))).toEqual([]);
      expect(open.count).toBe(0);
    }),
    { numRuns: 60 },
  );
});

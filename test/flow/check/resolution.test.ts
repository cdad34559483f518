/** Holds, conflicts and breaks that ended as they could not are found from the entries alone. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { breakBody, type Finding } from "../../../src/core/break.ts";
import type { Entry } from "../../../src/core/entry.ts";
import { Prefix } from "../../../src/core/prefix.ts";
import { TYP } from "../../../src/core/report.ts";
import { resolutionRules } from "../../../src/flow/check/resolution.ts";
import { CARD, NOW, signed } from "../../core/history.ts";
import { LEDGER_START, TestLedger } from "../../ledger.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";

let db: FreshDatabase;

beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

const RUNNER = { uuid: "a", runner_id: "1", machine_type: "small", tracking: "hosted" } as const;
const WHY = { approval: "", by: "p_1", reason: "test", salt: CARD.salt, ticket: "" };
const LONG = 2_678_400_001n;

/** By entry, what is wrong with it. */
async function found(ledger: TestLedger): Promise<string[]> {
  await ledger.load(db.owner);
  const [first, ...rest] = ledger.written.map(({ entry }) => entry);
  if (first?.kind !== "log") throw new Error("no log");
  const prefix = new Prefix(first);
  const findings: string[] = [];
  for (const entry of rest) {
    prefix.apply(entry);
    for await (const misjudged of resolutionRules(entry, prefix, db.reader)) {
      findings.push([entry.index, entry.kind, ...misjudged].join(" "));
    }
  }
  return findings;
}

test("an end of nothing, a second one, and a correction that nobody made", async () => {
  const ledger = new TestLedger("c".repeat(32), LEDGER_START);
  ledger.card("hosted", { "*": "1" });
  const agent = ledger.enrol(1, [RUNNER]);
  const { index: stands } = ledger.report(agent, { job: 1, runner: RUNNER });
  const { index } = ledger.report(agent, { job: 1, runner: RUNNER, duration: 1n });
  const conflict = String(index);
  const rejected = { ...WHY, hold: conflict, outcome: "rejected" } as const;
  ledger.append("conflict_resolved", { ...WHY, conflict, outcome: "corrected" });
  ledger.append("hold_resolved", rejected);
  ledger.append("conflict_resolved", { ...WHY, conflict: String(stands), outcome: "stands" });
  expect(await found(ledger)).toEqual([
    "6 conflict_resolved an admissible entry correction-needed",
    "7 hold_resolved an admissible entry not-found",
    "8 conflict_resolved an admissible entry not-found",
  ]);
});

test("a release without its usage, usage without its release, and usage of another report", async () => {
  const ledger = new TestLedger("d".repeat(32), LEDGER_START);
  ledger.card("hosted", { "*": "1" });
  const agent = ledger.enrol(2, [RUNNER]);
  const held = (job: number): string => {
    return String(ledger.report(agent, { job, runner: RUNNER, duration: LONG }).index);
  };
  const [first, second] = [held(1), held(2)];
  const usageOf = (hold: string, job: number): void => {
    ledger.report(agent, { job, runner: RUNNER }, (body) => ({ ...body, hold }));
  };
  ledger.append("hold_resolved", { ...WHY, hold: first, outcome: "released" });
  usageOf(second, 3);
  ledger.append("hold_resolved", { ...WHY, hold: second, outcome: "released" });
  usageOf(second, 4);
  const wrong = (hold: string): string => {
    return `usage usage of hold ${hold} that was released right before usage`;
  };
  expect(await found(ledger)).toEqual([
    `6 hold_resolved the usage of hold ${first} behind it another entry`,
    `7 ${wrong(second)}`,
    `9 ${wrong(second)}`,
  ]);
});

test("a break heals by an entry about its own job, key or source, and what has happened by none", async () => {
  const ledger = new TestLedger("e".repeat(32), LEDGER_START);
  ledger.card("hosted", { "*": "1" });
  const [agent, other] = [ledger.enrol(3, [RUNNER]), ledger.enrol(4, [RUNNER])];
  const usage = ledger.report(agent, { job: 1, runner: RUNNER });
  const foreign = ledger.report(other, { job: 2, runner: RUNNER });
  const lines = ledger.report(agent, { job: 1, runner: RUNNER });
  ledger.report(agent, { job: 3, runner: RUNNER });
  const attest = (seed: number, spool: string): Entry => {
    const marks = { clock_offset_ms: "0", counter: "1", files: [], malformed: "0", rejected: "0" };
    const payload = { ...marks, issued_at: NOW, log: ledger.log, spool };
    return ledger.append("attestation", { jws: signed(seed, TYP.attestation, payload) });
  };
  const [waiting, delivered, silent] = [attest(3, "1"), attest(3, "0"), attest(4, "0")];
  const day = { day: "2026-10-31", kind: "quota", source: "plan" } as const;
  const count = { ...day, by: "p", counted: "0", salt: CARD.salt, stated: "0" };
  const counted = ledger.append("source_count", count);
  const another = ledger.append("source_count", { ...count, source: "crm" });

  /** A break, and right behind it that this entry heals it. */
  const heal = (code: Finding["code"], of: Partial<Finding>, shown: Entry): bigint => {
    const about = { number: String(ledger.size) };
    const finding = { about, detail: "", month: "2026-10-01", tracking: "hosted", ...of } as const;
    const found = ledger.append("break", breakBody({ ...finding, code }, CARD.salt));
    const said = { ...WHY, by: "service", break: String(found.index), outcome: "healed" } as const;
    return ledger.append("break_resolved", { ...said, evidence: String(shown.index) }).index;
  };
  const [job, key] = [{ job_id: "1" }, { kid: agent.kid }];
  const gap = (kid: string, first: number, last = first): Partial<Finding> => ({
    ...{ kid, about: { first: String(first), kid } },
    detail: `1 of counters ${first} to ${last} have not come`,
  });
  heal("counter-gap", gap(agent.kid, 1, 2), usage);
  heal("counter-gap", gap(agent.kid, 2), lines);
  const first = heal("source-count", { about: day }, counted);
  const looks: [Finding["code"], Partial<Finding>, right: Entry, wrong: Entry][] = [
    ["missing-report", job, usage, foreign],
    ["missing-job", job, usage, lines],
    ["duration", job, usage, ledger.written[0]?.entry ?? foreign],
    ["foreign-runner", job, usage, delivered],
    ["other-namespace", job, usage, counted],
    ["missing-attestation", key, waiting, silent],
    ["undelivered", key, delivered, waiting],
  ];
  for (const [code, of, right] of looks) heal(code, of, right);
  const wrong = looks.map(([code, of, , shown]) => heal(code, of, shown));
  wrong.push(heal("counter-gap", gap(other.kid, 1), usage));
  // One beside the gap, not all have come, and where it does not say which have to.
  wrong.push(heal("counter-gap", gap(agent.kid, 3), lines));
  wrong.push(heal("counter-gap", gap(agent.kid, 4, 5), lines), heal("counter-gap", key, lines));
  const again = { about: day, after: first };
  wrong.push(heal("source-count", again, another));
  for (const code of ["over-timeout", "over-capacity", "sudden-jump", "clock-offset"] as const) {
    wrong.push(heal(code, { ...job, ...key }, code === "clock-offset" ? delivered : usage));
  }
  expect(await found(ledger)).toEqual(
    wrong.map((index) => `${index} break_resolved an admissible entry invalid-request`),
  );
});

/** Holds and conflicts that ended as they could not are found from the entries alone. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Prefix } from "../../../src/core/prefix.ts";
import { resolutionRules } from "../../../src/flow/check/resolution.ts";
import { CARD } from "../../core/history.ts";
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

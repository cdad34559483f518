/** Held reports and conflicts: two persons end each once, and what they let in is rated like any other. */
import { expect, test } from "vitest";
import { type Body, decodeEntry } from "../../src/core/entry.ts";
import { auditFiles, filesOf, said } from "./archive.ts";
import { type Agent, card, line, SALT, TestLog } from "./log.ts";

const WHY = { approval: "", by: "finance", reason: "checked", salt: SALT, ticket: "CASE-1" };
/** A minute more than the cap. */
const LONG = "2678460000";

/** A log that holds a report: index of the hold, and the usage that would be let in. */
function held(duration = LONG): { log: TestLog; agent: Agent; hold: string; usage: Body<"usage"> } {
  const log = new TestLog();
  log.write("rate_card", card());
  const agent = log.enrol(2, [line("runner-a")]);
  const rated = log.usage(agent, { job: "1", duration: "60000" });
  agent.counter -= 1n;
  const hold = log.submit(agent, { job: "1", duration });
  const entry = decodeEntry(log.entries.at(-1) ?? new Uint8Array());
  if (typeof entry === "string" || entry.kind !== "hold") throw new Error("it was not held");
  const usage = { ...rated, compute_ms: `${duration}.000000`, hold, jws: entry.body.jws };
  return { log, agent, hold, usage };
}

async function codes(log: TestLog): Promise<string[]> {
  return said(await auditFiles(filesOf(log))).codes;
}

test("a held report that two persons let in is usage, right behind its release", async () => {
  const { hold, log, usage } = held();
  log.write("hold_resolved", { ...WHY, hold, outcome: "released" });
  log.write("usage", usage);
  const { findings, months, open } = await auditFiles(filesOf(log));
  expect([findings.listed, open.listed]).toEqual([[], []]);
  expect(months).toMatchObject([{ jobs: 1n, duration: BigInt(LONG) }]);
});

test("what is let in is charged what it would have been charged", async () => {
  const { hold, log, usage } = held();
  log.write("hold_resolved", { ...WHY, hold, outcome: "released" });
  log.write("usage", { ...usage, compute_ms: "1.000000" });
  expect(await codes(log)).toEqual(["rating"]);
});

test("nobody lets in more than a build can take", async () => {
  const { hold, log, usage } = held("31622400001");
  log.write("hold_resolved", { ...WHY, hold, outcome: "released" });
  log.write("usage", usage);
  expect(await codes(log)).toEqual(["over-cap"]);
});

test("nobody lets in alone, later, or another report than was held", async () => {
  const alone = held();
  alone.log.write("usage", alone.usage);
  expect(await codes(alone.log)).toEqual(["hold-released"]);

  const later = held();
  later.log.write("hold_resolved", { ...WHY, hold: later.hold, outcome: "released" });
  later.log.attest(later.agent);
  later.log.write("usage", later.usage);
  expect(await codes(later.log)).toEqual(["hold-released"]);

  const other = held();
  other.log.write("hold_resolved", { ...WHY, hold: other.hold, outcome: "released" });
  const { jws } = other.log.report(other.agent, { job: "1", duration: LONG });
  other.log.write("usage", { ...other.usage, jws });
  expect(await codes(other.log)).toEqual(["hold-released"]);
});

test("of what was rejected there is never usage", async () => {
  const { hold, log, usage } = held();
  log.write("hold_resolved", { ...WHY, hold, outcome: "rejected" });
  expect(await codes(log)).toEqual([]);
  log.write("usage", usage);
  expect(await codes(log)).toEqual(["hold-released"]);
});

test("a hold ends once", async () => {
  const { hold, log } = held();
  log.write("hold_resolved", { ...WHY, hold, outcome: "rejected" });
  log.write("hold_resolved", { ...WHY, hold, outcome: "rejected" });
  expect(await codes(log)).toEqual(["hold-end"]);
});

/** A job with two statements: indices of what stands and of the conflict. */
function contested(): { log: TestLog; stands: string; conflict: string } {
  const log = new TestLog();
  log.write("rate_card", card());
  const agent = log.enrol(2, [line("runner-a")]);
  const stands = log.submit(agent, { job: "1" });
  return { log, stands, conflict: log.submit(agent, { job: "1", duration: "1" }) };
}

test("a conflict ends once: what stands stays, or was corrected before", async () => {
  const kept = contested();
  const { conflict } = kept;
  kept.log.write("conflict_resolved", { ...WHY, conflict, outcome: "stands" });
  expect(await codes(kept.log)).toEqual([]);
  kept.log.write("conflict_resolved", { ...WHY, conflict, outcome: "stands" });
  expect(await codes(kept.log)).toEqual(["conflict-end"]);

  const claimed = contested();
  claimed.log.write("conflict_resolved", { ...WHY, conflict, outcome: "corrected" });
  expect(await codes(claimed.log)).toEqual(["conflict-end"]);

  const { log, stands } = contested();
  const month = "2026-11-01";
  const named = { entry: stands, namespace_id: "1", project_id: "10", reverses: "" };
  log.write("adjustment", {
    ...{ ...WHY, billing_month: month, credit_run: "", first_line: "0" },
    lines: [{ ...named, amount: "-59999.000000", usage_month: month }],
  });
  log.write("conflict_resolved", { ...WHY, conflict, outcome: "corrected" });
  expect(await codes(log)).toEqual([]);
});

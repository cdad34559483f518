/** Where one step more would decide otherwise: honest entries on both sides of every edge are proven. */
import { expect, test } from "vitest";
import { auditFiles, filesOf } from "./archive.ts";
import { account, close, coverage, ready } from "./closing.ts";
import { agentOf, card, LONG_AGO, limit, line, NOW, SALT, TestLog } from "./log.ts";

const BY = { approval: "", by: "finance", salt: SALT };
const JUST_BEFORE = "2026-11-20T11:59:59.999Z";
const LATER = "2026-11-20T12:00:00.001Z";

/** Proven, and of the kinds that the test is about. */
async function proven(log: TestLog, kinds: Record<string, bigint>): Promise<void> {
  const { findings, kinds: seen, open } = await auditFiles(filesOf(log));
  expect(findings.listed).toEqual([]);
  expect(open.count).toBe(0);
  expect(Object.fromEntries(seen)).toMatchObject(kinds);
}

test("a charge exactly between two is rounded to the even one", async () => {
  const log = new TestLog();
  log.write("rate_card", card({ runner_factors: { "*": "1/128" } }));
  const agent = log.enrol(2, [line("runner-a")]);
  for (const duration of ["1", "3", "5", "7", "9"]) log.submit(agent, { duration });
  await proven(log, { usage: 5n });
});

test("a class's factor counts only if it is lower than the machine's, and a limit is named all the same", async () => {
  const log = new TestLog();
  const project_factors = { oss: "2", fork: "0.5", contribution: "monthly_minutes/300000" };
  log.write("rate_card", card({ project_factors, runner_factors: { "*": "1" } }));
  for (const [project_id, class_] of [
    ["10", "oss"],
    ["11", "fork"],
    ["12", "contribution"],
  ] as const) {
    const body = { class: class_, effective_from: LONG_AGO, project_id, source: "s" };
    log.write("project_class", { ...BY, ...body });
  }
  log.write("quota", limit("1", "600000"));
  log.write("quota", limit("2", "0"));
  const agent = log.enrol(2, [line("runner-a")]);
  for (const project of ["10", "11", "12", "13"]) {
    for (const namespace of ["1", "2", "3"]) log.submit(agent, { project, namespace });
  }
  await proven(log, { usage: 12n });
});

test("what begins at an instant is in force at it, and not a millisecond before", async () => {
  const log = new TestLog(undefined, { billing_from: LATER });
  log.write("rate_card", card());
  log.write("rate_card", card({ effective_from: LATER, runner_factors: { "*": "7" } }));
  const body = { ...BY, project_id: "10", source: "s" };
  log.write("project_class", { ...body, class: "oss", effective_from: LONG_AGO });
  log.write("project_class", { ...body, class: "contribution", effective_from: LATER });
  log.write("quota", limit("1", "400"));
  log.write("quota", { ...limit("1", "500", "2"), effective_from: LATER });
  const gpu = line("runner-a", { effective_from: LATER, machine_type: "gpu" });
  const agent = log.enrol(2, [line("runner-a"), gpu]);
  for (const finished of [JUST_BEFORE, NOW, LATER]) log.submit(agent, { finished });
  await proven(log, { usage: 3n });
});

test("what an entry announced, a later one takes back", async () => {
  const log = new TestLog();
  log.write("rate_card", card());
  log.write("rate_card", card({ effective_from: "2026-11-20T13:00:00.000Z" }));
  log.write("rate_card", card({ effective_from: LATER, runner_factors: { "*": "9" } }));
  const agent = log.enrol(2, [line("runner-a")]);
  log.at = "2026-11-20T14:00:00.000Z";
  log.submit(agent);
  await proven(log, { usage: 1n });
});

test("skew, cap and a key's last counter are themselves still good", async () => {
  const log = new TestLog();
  log.write("rate_card", card());
  const agent = log.enrol(2, [line("runner-a")]);
  log.submit(agent, { finished: "2026-11-20T12:05:00.000Z" });
  log.submit(agent, { finished: "2026-11-20T12:05:00.001Z" });
  log.submit(agent, { duration: "2678400000" });
  log.submit(agent, { duration: "2678400001" });
  log.write("key_rotated", { jws: log.rotation(agent, agentOf(5), "6") });
  log.submit(agent);
  log.submit(agent);
  log.submit(agent);
  await proven(log, { usage: 4n, hold: 3n });
});

test("of several ends of a key the lowest counts, in whichever order they come", async () => {
  for (const counters of [
    ["2", "4"],
    ["4", "2"],
  ]) {
    const [rotated = "", revoked = ""] = counters;
    const log = new TestLog();
    log.write("rate_card", card());
    const agent = log.enrol(2, [line("runner-a")]);
    log.write("key_rotated", { jws: log.rotation(agent, agentOf(5), rotated) });
    log.write("key_revoked", {
      by: "operator",
      instant: NOW,
      kid: agent.kid,
      last_trusted_counter: revoked,
      reason: "lost",
      salt: SALT,
    });
    for (let i = 0; i < 4; i += 1) log.submit(agent);
    await proven(log, { usage: 2n, hold: 2n });
  }
});

test("a build belongs to the month of its last millisecond, and a closed month's to the next", async () => {
  const log = new TestLog();
  log.write("rate_card", card());
  const agent = log.enrol(2, [line("runner-a")]);
  const edges = [
    "2026-09-30T23:59:59.999Z",
    "2026-10-01T00:00:00.000Z",
    "2026-10-31T23:59:59.999Z",
  ];
  log.write("account", account());
  for (const finished of edges) log.submit(agent, { finished });
  log.attest(agent);
  for (const month of ["2026-09-01", "2026-10-01"]) log.write("coverage", coverage(month, "7"));
  close(log, "2026-09-01");
  for (const finished of edges) log.submit(agent, { finished });
  close(log, "2026-10-01");
  for (const month of ["2026-11-01", "2026-12-01"]) {
    ready(log, month, [agent]);
    close(log, month);
  }
  log.submit(agent, { finished: "2026-12-31T23:59:59.999Z" });
  const { months } = await auditFiles(filesOf(log));
  expect(months.map(({ billing_month, jobs }) => [billing_month, jobs])).toEqual([
    ["2026-09-01", 1n],
    ["2026-10-01", 5n],
    ["2027-01-01", 1n],
  ]);
  await proven(log, { usage: 7n });
});

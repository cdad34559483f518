/** What keys, runners and breaks owe a month, before its cut-off and up to its closing. */
import { expect, test } from "vitest";
import { auditFiles, filesOf } from "../archive.ts";
import {
  close,
  closedBody,
  codes,
  coverage,
  difference,
  gap,
  pin,
  ready,
  start,
} from "../closing.ts";
import { agentOf, card, line, SALT, TestLog } from "../log.ts";

const FIRST = "2026-11-01";
const SECOND = "2026-12-01";

test("what a key's end, a break's resolution or a pause of coverage means is read from the prefix", async () => {
  const { log, agent } = start();
  log.write("key_rotated", { jws: log.rotation(agent, agentOf(5), "0") });
  accept(log, log.write("break", difference(FIRST)));
  ready(log, FIRST, []);
  pin(log, FIRST);
  expect(await codes(log)).toEqual([]);
});

function accept(log: TestLog, index: string): void {
  const why = { approval: "", by: "finance", reason: "late", salt: SALT, ticket: "CASE-1" };
  log.write("break_resolved", { ...why, break: index, evidence: "", outcome: "accepted" });
}

test("what a key that ended used and did not deliver keeps its month open, until persons say what becomes of it", async () => {
  const lost = { ...difference(FIRST), code: "counter-gap" } as const;
  for (const [excused, expected] of [
    [false, ["month-not-ready"]],
    [true, []],
  ] as const) {
    const { log, agent } = start();
    log.write("key_rotated", { jws: log.rotation(agent, agentOf(5), "50") });
    if (excused) accept(log, log.write("break", { ...lost, kid: agent.kid }));
    ready(log, FIRST, []);
    pin(log, FIRST);
    expect(await codes(log)).toEqual(expected);
  }
});

test("a gap that was accepted is of the counters that were known then, and of no later one", async () => {
  for (const [final, expected] of [
    ["3", []],
    ["4", []],
    ["5000", ["month-not-ready"]],
  ] as const) {
    const { log, agent } = start();
    log.submit(agent);
    log.submit(agent, { counter: "3" });
    accept(log, log.write("break", { ...difference(FIRST), code: "counter-gap", kid: agent.kid }));
    log.submit(agent, { counter: "4" });
    log.write("key_rotated", { jws: log.rotation(agent, agentOf(5), final) });
    ready(log, FIRST, []);
    pin(log, FIRST);
    expect(await codes(log)).toEqual(expected);
  }
});

test("whoever revokes a key says nothing of what it signed: its month waits for two persons", async () => {
  const silent = { ...difference(FIRST), code: "missing-attestation" } as const;
  for (const [steps, expected] of [
    [["revoke"], ["month-not-ready"]],
    [["attest", "revoke"], ["month-not-ready"]],
    [["revoke", "accept"], []],
    [["accept", "revoke"], []],
    [["accept", "submit", "revoke"], ["month-not-ready"]],
    [["rotate", "revoke"], ["month-not-ready"]],
    [["attest", "rotate", "revoke"], []],
  ] as const) {
    const { log, agent } = start();
    log.submit(agent);
    const does = {
      accept: () => accept(log, log.write("break", { ...silent, kid: agent.kid })),
      attest: () => log.attest(agent, "2"),
      revoke: () => {
        const said = { by: "operator", instant: log.at, last_trusted_counter: "0" };
        log.write("key_revoked", { ...said, kid: agent.kid, reason: "left", salt: SALT });
      },
      rotate: () => log.write("key_rotated", { jws: log.rotation(agent, agentOf(5), "2") }),
      submit: () => log.submit(agent),
    };
    for (const step of steps) does[step]();
    ready(log, FIRST, []);
    pin(log, FIRST);
    expect([steps, await codes(log)]).toEqual([steps, expected]);
  }
});

test("a gap heals once all of its counters have come, and by no report beside it or for another log", async () => {
  for (const [said, last, shown, expected] of [
    ["2", "4", "usage", []],
    ["2", "5", "usage", ["break-form"]],
    ["3", "4", "usage", ["break-form"]],
    ["2", "4", "line", ["break-form"]],
    ["2", "4", "beside", ["break-form"]],
  ] as const) {
    const { log, agent } = start();
    const beside = log.submit(agent, { counter: "1" });
    for (const counter of ["2", "3"]) log.submit(agent, { counter });
    const usage = log.submit(agent, { counter: "4" });
    const elsewhere = log.dispose(agent, [["wrong-log", "5", "text", ""]]);
    const detail = `1 of counters ${said} to ${last} have not come`;
    const broken = log.write("break", { ...gap(FIRST, agent.kid, "2"), detail });
    const why = { approval: "", by: "service", reason: "came", salt: SALT, ticket: "none" };
    const evidence = { beside, line: elsewhere, usage }[shown];
    log.write("break_resolved", { ...why, break: broken, evidence, outcome: "healed" });
    expect(await codes(log)).toEqual(expected);
  }
});

test("a key that ended owes its month coverage, and no month after it anything", async () => {
  const { log, agent } = start();
  log.write("key_rotated", { jws: log.rotation(agent, agentOf(5), "0") });
  log.at = "2026-12-05T00:00:00.000Z";
  pin(log, FIRST);
  expect(await codes(log)).toEqual(["month-not-ready"]);

  const later = start();
  ready(later.log, FIRST, [later.agent]);
  close(later.log, FIRST);
  later.log.write("key_rotated", { jws: later.log.rotation(later.agent, agentOf(5), "0") });
  ready(later.log, SECOND, []);
  close(later.log, SECOND);
  later.log.at = "2027-02-05T00:00:00.000Z";
  close(later.log, "2027-01-01");
  expect(await codes(later.log)).toEqual([]);
});

test("a key that came after a month owes it what its runners did in the month", async () => {
  const since = "2026-12-05T00:00:00.001Z";
  for (const [enrolled, shown, expected] of [
    [line("runner-b", { runner_id: "8" }), [], ["month-not-ready"]],
    [line("runner-b", { runner_id: "8" }), ["attested"], ["month-not-ready"]],
    [line("runner-b", { runner_id: "8" }), ["attested", "covered"], []],
    [line("runner-b", { runner_id: "8", effective_from: since }), [], []],
    [line("runner-b", { tracking: "self_managed" }), [], []],
    [line("runner-a", { effective_from: since }), [], ["month-not-ready"]],
    [line("runner-a", { effective_from: since, runner_id: "8" }), ["attested"], []],
  ] as const) {
    const { log, agent } = start();
    ready(log, FIRST, [agent]);
    const late = log.enrol(3, [enrolled]);
    for (const step of shown) {
      if (step === "attested") log.attest(late);
      else log.write("coverage", coverage(FIRST, "8"));
    }
    pin(log, FIRST);
    expect([enrolled, shown, await codes(log)]).toEqual([enrolled, shown, expected]);
  }
});

test("a month before anything was billed is owed nothing", async () => {
  const log = new TestLog(undefined, { billing_from: "2026-12-15T00:00:00.000Z" });
  log.write("rate_card", card());
  const agent = log.enrol(2, [line("runner-a")]);
  log.submit(agent);
  log.at = "2026-12-05T00:00:00.000Z";
  close(log, FIRST);
  log.at = "2027-01-05T00:00:00.000Z";
  expect(await codes(log)).toEqual([]);
  pin(log, SECOND);
  expect(await codes(log)).toEqual(["month-not-ready"]);
  const idle = new TestLog(undefined, { billing_from: "2026-12-15T00:00:00.000Z" });
  idle.at = "2026-12-05T00:00:00.000Z";
  pin(idle, FIRST);
  expect(await codes(idle)).toEqual(["month-before"]);
});

test("a month is not closed past a break that has opened since its cut-off", async () => {
  const { log, agent } = start();
  ready(log, FIRST, [agent]);
  const closing = pin(log, FIRST);
  log.write("break", difference(FIRST));
  log.write("month_closed", closedBody(log, closing, FIRST));
  expect(await codes(log)).toEqual(["month-not-ready"]);
});

test("whoever a closed month says holds it, that is its operator's word until known witnesses do", async () => {
  const { log, agent } = start();
  ready(log, FIRST, [agent]);
  const body = closedBody(log, pin(log, FIRST), FIRST);
  const anchored_by = [{ at: log.at, name: "witness.example" }];
  const index = BigInt(log.write("month_closed", { ...body, anchor: "witnessed", anchored_by }));
  const { findings, open } = await auditFiles(filesOf(log));
  expect(findings.listed).toEqual([]);
  expect(open.listed).toMatchObject([{ code: "anchor-unproven", index }]);
});

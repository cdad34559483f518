import { expect, test } from "vitest";
import { type Judgement, judge, judgeReleased, trackingOf } from "../../src/core/judge.ts";
import type { Report } from "../../src/core/report.ts";
import { History, kidOf, LONG_AGO, NOW, report, UUID } from "./history.ts";

const OTHER = "another-runner";

function codeOf(judgement: Judgement): string {
  return judgement.kind === "hold" ? judgement.code : "usage";
}

function judged(history: History, said: Report = report(), seed = 1, at = NOW): string {
  return codeOf(judge(history.prefix, kidOf(seed), said, at));
}

function running(): History {
  const history = new History();
  history.agent(1);
  history.card();
  return history;
}

test("a covered report becomes usage under its key's enrolment and its runner's line", () => {
  const history = running();
  const judgement = judge(history.prefix, kidOf(1), report(), NOW);
  if (judgement.kind === "hold") throw new Error(judgement.code);
  expect(judgement.body.enrolment).toBe("1");
  expect(judgement.runner.runner_id).toBe("700");
  expect(Object.hasOwn(judgement.body, "hold")).toBe(false);
});

test("invariant 7: the same prefix, report and instant give the same judgement, whatever came since", () => {
  const before = running();
  const after = running();
  const first = judge(before.prefix, kidOf(1), report(), NOW);
  after.card({ runner_factors: { small: "9" }, effective_from: "2026-11-20T12:00:00.001Z" });
  expect(judge(after.prefix, kidOf(1), report(), NOW)).toEqual(first);
  expect(judge(before.prefix, kidOf(1), report(), NOW)).toEqual(first);
});

test("L34: a rotated key is welcome up to its final counter for ever, and held above it", () => {
  const history = running();
  history.rotate(1, 2, "5");
  expect(judged(history, report({ counter: "5" }))).toBe("usage");
  expect(judged(history, report({ counter: "6" }))).toBe("key-ended");
  const backDated = report({ counter: "6", usage: { finished_at: LONG_AGO } });
  expect(judged(history, backDated)).toBe("key-ended");
});

test("T58: of several ends of a key the lowest counts", () => {
  const history = running();
  history.rotate(1, 2, "9");
  history.revoke(1, "4");
  expect(judged(history, report({ counter: "4" }))).toBe("usage");
  expect(judged(history, report({ counter: "5" }))).toBe("key-ended");
  history.revoke(1, "2");
  expect(judged(history, report({ counter: "3" }))).toBe("key-ended");

  const other = running();
  other.rotate(1, 2, "4");
  other.revoke(1, "9");
  expect(judged(other, report({ counter: "5" }))).toBe("key-ended");
});

test("a key speaks for the runners of its own enrolment and for no others", () => {
  const history = running();
  history.agent(2, [{ uuid: OTHER }]);
  expect(judged(history, report({ uuid: OTHER }))).toBe("outside-enrolment");
  expect(judged(history, report({ uuid: OTHER }), 2)).toBe("usage");
  expect(judged(history, report(), 2)).toBe("outside-enrolment");
});

test("T12: a key or runner that the log does not know is held, not ignored", () => {
  const history = running();
  expect(judged(history, report(), 9)).toBe("outside-enrolment");
  expect(judged(history, report({ uuid: "unheard-of" }))).toBe("outside-enrolment");
});

test("a report of another log is outside the enrolment", () => {
  expect(judged(running(), report({ log: "f".repeat(32) }))).toBe("outside-enrolment");
});

test("a group runner's key cannot report another namespace's job", () => {
  const history = new History();
  history.card();
  history.agent(1, [{ runner_type: "group" }], ["7", "8"]);
  expect(judged(history, report({ job: { root_namespace_id: "8" } }))).toBe("usage");
  expect(judged(history, report({ job: { root_namespace_id: "9" } }))).toBe("outside-enrolment");
});

test("a later enrolment of the same runner widens nothing that an earlier key may report", () => {
  const history = new History();
  history.card();
  history.agent(1, [{ runner_type: "project" }], ["7"]);
  history.agent(2, [{ effective_from: "2026-11-20T12:00:00.001Z" }]);
  const elsewhere = report({ job: { root_namespace_id: "9" } });
  expect(judged(history, elsewhere)).toBe("outside-enrolment");
  expect(judged(history, elsewhere, 2)).toBe("usage");
});

test("before the first machine type of its runner a report is outside the enrolment", () => {
  const history = new History();
  history.card();
  history.agent(1, [{ effective_from: NOW }]);
  const early = report({ usage: { finished_at: "2026-11-20T11:59:59.999Z" } });
  expect(judged(history, early)).toBe("outside-enrolment");
  expect(judged(history)).toBe("usage");
});

test("a finish up to the log's skew ahead of the entry is usage, a millisecond more is future", () => {
  const history = new History({ skew_ms: "1000" });
  history.agent(1);
  history.card();
  const ahead = (finished_at: string): Report => report({ usage: { finished_at } });
  expect(judged(history, ahead("2026-11-20T12:00:01.000Z"))).toBe("usage");
  expect(judged(history, ahead("2026-11-20T12:00:01.001Z"))).toBe("future");
});

test("a duration up to the log's cap is usage, a millisecond more is over the cap", () => {
  const history = running();
  expect(judged(history, report({ usage: { duration_ms: "2678400000" } }))).toBe("usage");
  expect(judged(history, report({ usage: { duration_ms: "2678400001" } }))).toBe("over-cap");
});

test("whoever lets a report in, no build takes more than 366 days", () => {
  const { prefix } = running();
  const released = (duration_ms: string): string =>
    codeOf(judgeReleased(prefix, kidOf(1), report({ usage: { duration_ms } })));
  expect(released("31622400000")).toBe("usage");
  expect(released("31622400001")).toBe("over-cap");
});

test("without a card of the runner's tracking there is no rate", () => {
  const history = new History();
  history.agent(1);
  expect(judged(history)).toBe("no-rate");
  history.card({ tracking: "self_managed" });
  expect(judged(history)).toBe("no-rate");
  history.card();
  expect(judged(history)).toBe("usage");
});

test("the first reason of the order of judgement is the one that is named", () => {
  const history = new History({ skew_ms: "0", duration_cap_ms: "0" });
  history.agent(1);
  const everything = { finished_at: "2027-01-01T00:00:00.000Z", duration_ms: "1" };
  const said = report({ counter: "2", uuid: OTHER, usage: everything });
  history.revoke(1, "1");
  expect(judged(history, said)).toBe("key-ended");
  expect(judged(history, { ...said, counter: "1" })).toBe("outside-enrolment");
  const covered = report({ usage: everything });
  expect(judged(history, covered)).toBe("future");
  expect(judged(history, covered, 1, everything.finished_at)).toBe("over-cap");
  const short = report({ usage: { ...everything, duration_ms: "0" } });
  expect(judged(history, short, 1, everything.finished_at)).toBe("no-rate");
});

test("T18: a duplicate is looked up by its runner's tracking, before coverage is asked", () => {
  const history = running();
  history.agent(2, [{ uuid: OTHER, tracking: "self_managed" }]);
  expect(trackingOf(history.prefix, kidOf(1), report())).toBe("hosted");
  expect(trackingOf(history.prefix, kidOf(1), report({ uuid: OTHER }))).toBe("self_managed");
  expect(trackingOf(history.prefix, kidOf(1), report({ uuid: "unheard-of" }))).toBeUndefined();
  expect(trackingOf(history.prefix, kidOf(9), report({ uuid: UUID }))).toBeUndefined();
});

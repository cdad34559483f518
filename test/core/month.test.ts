/** Where usage is posted, by entries of the log (BYTES §4). */
import { expect, test } from "vitest";
import { judge } from "../../src/core/judge.ts";
import { History, kidOf, LONG_AGO, NOW, report } from "./history.ts";

function months(history: History, finished_at: string): string | [string, string] {
  const judgement = judge(history.prefix, kidOf(1), report({ usage: { finished_at } }), NOW);
  if (judgement.kind === "hold") return judgement.code;
  return [judgement.body.usage_month, judgement.body.billing_month];
}

function running(): History {
  const history = new History();
  history.agent(1);
  history.card();
  return history;
}

test("T21, G06: a build over midnight belongs wholly to the month in which it finished", () => {
  expect(months(running(), "2026-11-01T00:03:00.000Z")).toEqual(["2026-11-01", "2026-11-01"]);
  expect(months(running(), "2026-10-31T23:59:59.999Z")).toEqual(["2026-10-01", "2026-10-01"]);
});

test("T26, G30: what comes after its month was cut off is posted to the month that is open", () => {
  const history = running();
  expect(months(history, "2026-09-30T23:59:59.999Z")).toEqual(["2026-09-01", "2026-09-01"]);
  history.close("2026-09-01");
  expect(months(history, "2026-09-30T23:59:59.999Z")).toEqual(["2026-09-01", "2026-10-01"]);
  history.close("2026-10-01");
  expect(months(history, "2026-09-30T23:59:59.999Z")).toEqual(["2026-09-01", "2026-11-01"]);
  expect(months(history, "2026-11-02T00:00:00.000Z")).toEqual(["2026-11-01", "2026-11-01"]);
});

test("T27: usage of days ago is of its own month, whenever it comes", () => {
  const history = running();
  history.close("2026-08-01");
  expect(months(history, "2026-09-03T10:00:00.000Z")).toEqual(["2026-09-01", "2026-09-01"]);
});

test("a withdrawn closing cuts nothing off, and the closing before it does again", () => {
  const history = running();
  history.close("2026-09-01");
  const october = history.close("2026-10-01");
  history.withdraw(october);
  expect(months(history, LONG_AGO)).toEqual(["2026-01-01", "2026-10-01"]);
  expect(history.prefix.lastClosing?.month).toBe("2026-09-01");
  history.close("2026-10-01");
  expect(months(history, LONG_AGO)).toEqual(["2026-01-01", "2026-11-01"]);
});

test("December is followed by January", () => {
  const history = running();
  history.close("2026-10-01");
  history.close("2026-11-01", "2026-12-04T00:00:00.000Z");
  history.close("2026-12-01", "2027-01-04T00:00:00.000Z");
  expect(history.prefix.postingMonth("2026-11-01")).toBe("2027-01-01");
});

import { expect, test } from "vitest";
import { openTrouble } from "../../src/command/trouble.ts";
import { Problem } from "../../src/core/problem.ts";
import { openLog } from "../../src/telemetry.ts";

interface Line {
  level: number;
  msg: string;
  logs?: string[];
  count?: number;
}

function trouble() {
  const lines: Line[] = [];
  const logger = openLog("info", { write: (line: string) => lines.push(JSON.parse(line)) });
  const { failed, roundEnded } = openTrouble(logger, "seal");
  return {
    /** What a round says in which these logs fail with these errors. */
    round: (failures: Record<string, unknown>): Line[] => {
      for (const [log, error] of Object.entries(failures)) failed(error, log);
      roundEnded();
      return lines.splice(0);
    },
    whole: (error: unknown): Line[] => {
      failed(error);
      roundEnded();
      return lines.splice(0);
    },
  };
}

const away = () => new Problem("archive-unavailable");
const behind = () => new Problem("log-behind");

test("a refused archive is one line when it begins and one when it is over, however long it lasts", () => {
  const { round } = trouble();
  const said = [round({ a: away() })];
  for (let second = 0; second < 60; second += 1) said.push(round({ a: away() }));
  said.push(round({}), round({}));
  expect(said.flat()).toMatchObject([
    { level: 50, msg: "seal", logs: ["a"], count: 1 },
    { level: 30, msg: "seal: goes on", logs: ["a"], count: 1 },
  ]);
});

test("a thousand logs with one reason are one line of ten names and their count", () => {
  const { round } = trouble();
  const all = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`log ${i}`, away()]));
  const [line, ...more] = round(all);
  expect(more).toEqual([]);
  expect(line?.logs).toHaveLength(10);
  expect(line?.count).toBe(1_000);
  expect(round({ ...all, late: away() })).toMatchObject([{ logs: ["late"], count: 1 }]);
});

test("another reason of the same log is said, and so is one that comes back", () => {
  const { round } = trouble();
  expect(round({ a: away(), b: new Error("x") })).toHaveLength(2);
  expect(round({ a: behind(), b: new Error("x") })).toMatchObject([{ level: 50, logs: ["a"] }]);
  expect(round({ b: new Error("x") })).toMatchObject([{ level: 30, logs: ["a"] }]);
  expect(round({ a: behind(), b: new Error("x") })).toMatchObject([{ level: 50, logs: ["a"] }]);
});

test("what fails as a whole names no log", () => {
  const { whole, round } = trouble();
  const [line] = whole(new Error("away"));
  expect(line).not.toHaveProperty("logs");
  expect(whole(new Error("away"))).toEqual([]);
  expect(round({})).toMatchObject([{ level: 30, msg: "seal: goes on" }]);
});

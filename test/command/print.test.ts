import { expect, test } from "vitest";
import { printable, table } from "../../src/command/print.ts";
import { showProgress } from "../../src/command/progress.ts";

test("columns are as wide as their widest cell, and numbers stand to the right", () => {
  const rows = [
    ["acme", "12.50", "x"],
    ["shopping", "7", ""],
  ];
  expect(table(["name", "minutes", "note"], rows)).toEqual([
    "name      minutes  note",
    "acme        12.50  x",
    "shopping        7",
  ]);
});

test("what comes from elsewhere cannot steer a terminal, nor begin a line of its own", () => {
  expect(printable("a\u001b[2Jb\r\nc\u202ed\u2028e")).toBe("a [2Jb c d e");
});

test("where there is no terminal, long work says now and then how far it is", () => {
  const written: string[] = [];
  const progress = showProgress("entries", {
    isTTY: false,
    write: (line: string) => written.push(line) > 0,
  });
  for (let done = 0; done <= 250_000; done += 1_000) progress.update("first", done, 250_000);
  for (let done = 0; done <= 150_000; done += 1_000) progress.update("second", done);
  progress.stop();
  expect(written).toEqual([
    "first: 100000 of 250000 entries\n",
    "first: 200000 of 250000 entries\n",
    "second: 100000 entries\n",
  ]);
});

/** Two files of rows, compared in their places, whatever order that is. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { compareInPlace } from "../../../audit/export/focus/compare.ts";
import type { Row } from "../../../src/core/export/tables.ts";

const COMPARING = {
  columns: [
    { name: "what", type: "text" },
    { name: "amount", type: "text" },
  ],
  order: ["what"],
  beside: new Set<string>(),
} as const;

async function differences(file: readonly Row[], log: readonly Row[]): Promise<string[]> {
  const rows = async function* () {
    yield* file;
  };
  const found: string[] = [];
  for await (const { detail, row } of compareInPlace(rows(), log, COMPARING))
    found.push(`${row} ${detail}`);
  return found;
}

const rows = fc.array(fc.tuple(fc.constantFrom("a", "b", "c"), fc.constantFrom("1", "2")), {
  maxLength: 12,
});

test("nothing is found of the same rows in the same order, and something of any others", async () => {
  await fc.assert(
    fc.asyncProperty(rows, rows, async (file, log) => {
      const isSame = JSON.stringify(file) === JSON.stringify(log);
      const found = await differences(file, log);
      expect(found.length === 0).toBe(isSame);
      const count = (what: string) => found.filter((each) => each.includes(what)).length;
      expect(count("gives no such row") - count("is missing")).toBe(file.length - log.length);
    }),
    { numRuns: 2000 },
  );
});

test("behind more missing rows than are looked ahead for, every row is still accounted for", async () => {
  const log = Array.from({ length: 1000 }, (_, at): Row => [String(at), "1"]);
  const found = await differences([...log.slice(0, 1), ...log.slice(900)], log);
  expect(found.filter((each) => each.includes("is missing")).length).toBe(899);
  expect(found[0]).toBe("2 what 900, not 1");
});

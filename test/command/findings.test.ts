/** What a check has found, as it is listed. */
import { expect, test } from "vitest";
import { Findings } from "../../src/command/findings.ts";
import type { Finding } from "../../src/flow/check/event.ts";

test("a cause that is found everywhere keeps no other table out of the list, and all are counted", () => {
  const findings = new Findings();
  const of = (table: string, index: number): Finding => {
    const values = { column: "at", expected: "1", found: "2", log: "l" };
    return { kind: "finding", index: String(index), table, ...values };
  };
  for (let index = 0; index < 1_000; index += 1) findings.add(of("entries", index));
  findings.add(of("statements", 7));
  expect(findings.tables).toEqual({ entries: 1_000, statements: 1 });
  expect(findings.listed).toHaveLength(21);
  const lines = findings.lines();
  expect(lines[20]).toBe("log l, entry 7: statements.at is 2; the bytes give 1");
  expect(lines[21]).toBe("and 980 more of entries");
  expect(lines).toHaveLength(22);
});

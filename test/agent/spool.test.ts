import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { Spool } from "../../src/agent/spool.ts";

const root = mkdtempSync(join(tmpdir(), "minutebook-spool-"));
const KID = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";

const RESULT = { code: "accepted", digest: `${"A".repeat(43)}=` };

afterAll(() => {
  rmSync(root, { recursive: true });
});

test("after any reports, answers and restarts, what waits is what a list would hold", () => {
  const step = fc.oneof(
    fc.record({ reports: fc.integer({ min: 0, max: 4 }) }),
    fc.record({ answers: fc.integer({ min: 0, max: 5 }) }),
    fc.constant({ restart: true }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const folder = mkdtempSync(join(root, "spool-"));
      let spool = new Spool(folder, 400);
      let made = 0;
      let waiting: string[] = [];
      for (const each of steps) {
        if ("restart" in each) {
          spool.close();
          spool = new Spool(folder, 400);
        } else if ("reports" in each) {
          const reports = Array.from({ length: each.reports }, () => `report ${++made}`);
          waiting.push(...reports);
          const counters = { [KID]: String(made) };
          spool.commit({ source: 1, offset: made * 10, rejected: 1, counters, reports });
        } else {
          const count = Math.min(each.answers, waiting.length);
          const results = Array.from({ length: count }, () => RESULT);
          if (count > 0) spool.answer({ results, at: 1 });
          waiting = waiting.slice(count);
        }
        expect([...spool.pending()]).toEqual(waiting);
        expect(spool.depth).toBe(waiting.length);
        expect(spool.counter(KID)).toBe(BigInt(made));
      }
      expect(spool.codes["accepted"] ?? 0).toBe(made - waiting.length);
      spool.close();
    }),
    { numRuns: 40 },
  );
});

test("more answers than reports are refused before anything is written", () => {
  const spool = new Spool(mkdtempSync(join(root, "spool-")));
  expect(() => spool.answer({ results: [RESULT], at: 1 })).toThrow("more answers than reports");
  expect(spool.codes).toEqual({});
  spool.close();
});

test("codes that a service invents, names of Object's own among them, damage no spool and do not swell it", () => {
  const folder = mkdtempSync(join(root, "spool-"));
  const codes = ["constructor", "valueof", ...Array.from({ length: 200 }, (_, i) => letters(i))];
  const spool = new Spool(folder, 1);
  const reports = codes.map((code) => `report ${code}`);
  spool.commit({ source: 1, offset: 1, rejected: 0, counters: {}, reports });
  spool.answer({ results: codes.map((code) => ({ ...RESULT, code })), at: 1 });
  spool.commit({ source: 1, offset: 2, rejected: 0, counters: {}, reports: ["the next"] });
  spool.close();
  const again = new Spool(folder);
  expect(again.codes).toMatchObject({ constructor: 1, valueof: 1 });
  expect(Object.keys(again.codes).length).toBeLessThan(100);
  expect(Object.values(again.codes).reduce((sum, count) => sum + count, 0)).toBe(codes.length);
  again.close();
});

function letters(number: number): string {
  return [...String(number)].map((digit) => "abcdefghij"[Number(digit)]).join("");
}

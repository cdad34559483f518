import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { openSpill } from "../../audit/spill.ts";
import { groups, pileOfHash, pileOfNumber } from "../../audit/tally/piles.ts";
import { encodeHex } from "../../src/core/text.ts";
import { auditFiles, filesOf } from "./archive.ts";
import { honestLog } from "./honest.ts";

const HOME = mkdtempSync(join(tmpdir(), "audit-spill-"));
afterAll(() => rmSync(HOME, { recursive: true }));

test("records come back in their piles whether or not they went to disk", () => {
  const record = fc.tuple(fc.nat(5), fc.uint8Array({ minLength: 4, maxLength: 4 }));
  fc.assert(
    fc.property(fc.array(record, { maxLength: 300 }), fc.nat(4096), (records, max) => {
      const spill = openSpill(HOME, max);
      const piles = spill.open(4);
      const naive = new Map<number, string>();
      for (const [pile, bytes] of records) {
        piles.add(pile, bytes);
        naive.set(pile, (naive.get(pile) ?? "") + encodeHex(bytes));
      }
      expect(piles.numbers()).toEqual([...naive.keys()].sort());
      for (const [pile, hex] of naive) expect(encodeHex(piles.read(pile))).toBe(hex);
      expect(piles.read(9)).toHaveLength(0);
      spill.close();
    }),
    { numRuns: 50 },
  );
  expect(readdirSync(HOME)).toEqual([]);
});

test("records of one key come as one run, in the order of their bytes", () => {
  const record = fc.uint8Array({ minLength: 2, maxLength: 2, max: 3 });
  fc.assert(
    fc.property(fc.array(record, { maxLength: 60 }), (records) => {
      const spill = openSpill(HOME);
      const piles = spill.open(2);
      for (const bytes of records) piles.add((bytes[0] ?? 0) % 2, bytes);
      const runs = Array.from(groups(piles, 2, 1), (run) => run.map(encodeHex));
      expect(runs.flat().sort()).toEqual(records.map(encodeHex).sort());
      const keys = runs.map(([first]) => first?.slice(0, 2));
      expect(new Set(keys).size).toBe(runs.length);
      for (const run of runs) {
        expect(run).toEqual(run.toSorted());
        expect(new Set(run.map((hex) => hex.slice(0, 2))).size).toBe(1);
      }
    }),
  );
});

test("two kinds of records never share a pile", () => {
  const spill = openSpill(HOME, 1);
  const [one, two] = [spill.open(1), spill.open(1)];
  one.add(0, Uint8Array.of(1));
  two.add(0, Uint8Array.of(2));
  expect([one.read(0), two.read(0)]).toEqual([Uint8Array.of(1), Uint8Array.of(2)]);
  spill.close();
  spill.close();
  expect(readdirSync(HOME)).toEqual([]);
});

test("piles are even: neighbouring jobs and any hashes spread over all of them", () => {
  const jobs = new Set(Array.from({ length: 20_000 }, (_, i) => pileOfNumber(BigInt(i))));
  expect(jobs.size).toBe(1024);
  expect(pileOfNumber(2n ** 63n - 1n)).toBeLessThan(1024);
  expect(pileOfHash(new Uint8Array(32).fill(255))).toBeLessThan(1024);
});

test("an audit whose records all went to disk finds what one in memory finds", async () => {
  const { log, agent } = honestLog();
  log.force("usage", { ...log.usage(log.enrol(9, [{ ...RUNNER }]), { job: "1" }) });
  log.dispose(agent, [["duplicate", "99", "x", "1"]]);
  const spill = openSpill(HOME, 1);
  const files = filesOf(log, [1, 2, 3, log.size]);
  const disk = await auditFiles(files, { openPiles: spill.open });
  spill.close();
  const memory = await auditFiles(files);
  expect(disk).toEqual(memory);
  expect(disk.findings.count).toBe(2);
});

const RUNNER = {
  effective_from: "2026-11-20T12:00:00.001Z",
  machine_type: "small",
  runner_id: "7",
  runner_type: "instance",
  tracking: "hosted",
  uuid: "runner-a",
} as const;

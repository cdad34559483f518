import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { Findings } from "../../audit/finding.ts";
import { openSpill } from "../../audit/spill.ts";
import { Jobs, STATED } from "../../audit/tally/jobs.ts";
import { type Piles, pileOfHash, pileOfNumber, SortedPiles } from "../../audit/tally/piles.ts";
import { getAmount, setAmount } from "../../audit/tally/record.ts";
import { encodeHex } from "../../src/core/text.ts";
import { auditFiles, filesOf } from "./archive.ts";
import { honestLog } from "./honest.ts";

const HOME = mkdtempSync(join(tmpdir(), "audit-spill-"));
afterAll(() => rmSync(HOME, { recursive: true }));

function all(piles: Piles, pile: number): string {
  return Array.from(piles.read(pile, 1024), encodeHex).join("");
}

test("records come back in their piles whether or not they went to disk, in parts of any size", () => {
  const record = fc.tuple(fc.nat(5), fc.uint8Array({ minLength: 4, maxLength: 4 }));
  const limits = fc.record({ max: fc.nat(4096), part: fc.integer({ min: 1, max: 64 }) });
  fc.assert(
    fc.property(fc.array(record, { maxLength: 300 }), limits, (records, { max, part }) => {
      const spill = openSpill(HOME, max);
      const piles = spill.open(4);
      const naive = new Map<number, string>();
      for (const [pile, bytes] of records) {
        piles.add(pile, bytes);
        naive.set(pile, (naive.get(pile) ?? "") + encodeHex(bytes));
      }
      expect(piles.numbers()).toEqual([...naive.keys()].sort());
      for (const [pile, hex] of naive) {
        const parts = Array.from(piles.read(pile, part), encodeHex);
        expect(parts.join("")).toBe(hex);
        for (const text of parts) {
          expect(text.length % 8).toBe(0);
          expect(text.length / 2).toBeLessThanOrEqual(Math.max(part, 4));
        }
      }
      expect(Array.from(piles.read(9, part))).toEqual([]);
      spill.close();
    }),
    { numRuns: 50 },
  );
  expect(readdirSync(HOME)).toEqual([]);
});

test("records of one key come as one group, in the order of their bytes, however few are sorted at once", () => {
  const record = fc.uint8Array({ minLength: 2, maxLength: 2, max: 3 });
  const limit = fc.integer({ min: 2, max: 150 });
  fc.assert(
    fc.property(fc.array(record, { maxLength: 60 }), limit, (records, sortedBytesMax) => {
      const spill = openSpill(HOME);
      const sorted = new SortedPiles(spill.open, { width: 2, keyWidth: 1 }, sortedBytesMax);
      for (const bytes of records) sorted.add((bytes[0] ?? 0) % 2, bytes);
      const groups: string[][] = [];
      let open = false;
      for (const { record, first, last } of sorted.records()) {
        expect(first).toBe(!open);
        if (first) groups.push([]);
        groups.at(-1)?.push(encodeHex(record));
        open = !last;
      }
      expect(open).toBe(false);
      const naive = new Map<string, string[]>();
      for (const hex of records.map(encodeHex).sort()) {
        naive.set(hex.slice(0, 2), [...(naive.get(hex.slice(0, 2)) ?? []), hex]);
      }
      expect(groups.sort()).toEqual([...naive.values()]);
    }),
  );
});

test("of a hundred thousand statements about one job no more are held at once than are sorted at once", () => {
  const spill = openSpill(HOME, 1 << 20);
  let held = 0;
  let largest = 0;
  const jobs = new Jobs((width) => {
    const piles = spill.open(width);
    const read = function* (pile: number, partBytesMax: number): Generator<Uint8Array> {
      for (const part of piles.read(pile, partBytesMax)) {
        held += 1;
        largest = Math.max(largest, part.length);
        yield part;
      }
    };
    return { add: (pile, record) => piles.add(pile, record), numbers: () => piles.numbers(), read };
  });
  const fact = new Uint8Array(32);
  const COUNT = 100_000;
  for (let i = 0; i < COUNT; i += 1) {
    new DataView(fact.buffer).setUint32(0, i);
    const as = i === 0 ? STATED.usage : STATED.conflict;
    jobs.note({ tracking: "hosted", job: 5n, index: BigInt(i), as, fact, stands: 0n });
  }
  const findings = new Findings();
  jobs.check(findings);
  spill.close();
  expect(findings.count).toBe(0);
  expect(largest).toBeLessThanOrEqual(1024 * 1024);
  expect(held).toBeGreaterThan(5);
});

test("two kinds of records never share a pile", () => {
  const spill = openSpill(HOME, 1);
  const [one, two] = [spill.open(1), spill.open(1)];
  one.add(0, Uint8Array.of(1));
  two.add(0, Uint8Array.of(2));
  expect([all(one, 0), all(two, 0)]).toEqual(["01", "02"]);
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

test("an amount comes back from its field as it was, and one that the field cannot hold is refused", () => {
  const view = new DataView(new ArrayBuffer(16));
  const [low, whole] = [2n ** 64n, 2n ** 127n];
  for (const end of [0n, low, -low, whole, -whole]) {
    for (const amount of [end - 1n, end, end + 1n]) {
      if (amount < -whole || amount >= whole) {
        expect(() => setAmount(view, 0, amount)).toThrow("beyond 128 bits");
      } else {
        setAmount(view, 0, amount);
        expect(getAmount(view, 0)).toBe(amount);
      }
    }
  }
});

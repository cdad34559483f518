/** What a spool forgets, and what never. */
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { Spool } from "../../src/agent/spool.ts";

const DAY_MS = 24 * 3_600_000;
const KEEP_DAYS = 35;
const SEGMENT_BYTES = 1_000;
const KID = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";
const DIGEST = `${"A".repeat(43)}=`;
const root = mkdtempSync(join(tmpdir(), "minutebook-prune-"));

afterAll(() => {
  rmSync(root, { recursive: true });
});

/** A spool of one log whose host has lived for so many days. */
class Life {
  readonly folder = mkdtempSync(join(root, "spool-"));
  spool = new Spool(this.folder, SEGMENT_BYTES);
  now = 1_000 * DAY_MS;
  signed = 0;

  sign(count: number): void {
    const reports = Array.from({ length: count }, () => `report ${this.signed++}`);
    const counters = { [KID]: String(this.signed) };
    this.spool.commit({ source: 1, offset: this.signed, rejected: 0, counters, reports });
  }

  /** Answers what waits, by one promise. */
  answer(): void {
    const results = Array.from({ length: this.spool.depth }, () => ({
      code: "accepted",
      digest: DIGEST,
    }));
    if (results.length > 0) this.spool.answer({ results, at: this.now, receipt: "receipt" });
  }

  /** Proves all reports of the first promises that are open, the first one of each promise but `spare`d. */
  prove(count: number, spare = false): void {
    const open = [...this.spool.open()].slice(0, count);
    for (const { promise, first, results } of open) {
      const from = first + (spare ? 1 : 0);
      this.spool.prove({ promise, at: this.now, reports: [[from, first + results.length]] });
    }
  }

  restart(): void {
    this.spool.close();
    this.spool = new Spool(this.folder, SEGMENT_BYTES);
  }

  get bytes(): number {
    return readdirSync(this.folder).reduce(
      (sum, name) => sum + statSync(join(this.folder, name)).size,
      0,
    );
  }

  /** All reports that are still here. */
  texts(): Set<string> {
    return new Set(this.spool.texts([0, this.signed]));
  }

  has(report: number): boolean {
    return this.texts().has(`report ${report}`);
  }
}

test("a spool in steady state stays as large as 35 days need, for ever", () => {
  const life = new Life();
  life.signed = 10_000; // so that no number gets longer on the way
  const sizes: number[] = [];
  for (let day = 0; day < 160; day++) {
    life.prove(10); // those of the day before
    life.sign(5);
    life.answer();
    life.spool.prune(life.now);
    if (day % 20 === 19) life.restart();
    sizes.push(life.bytes);
    life.now += DAY_MS;
  }
  const settled = Math.max(...sizes.slice(50, 100));
  expect(Math.max(...sizes.slice(100))).toBeLessThanOrEqual(settled + 2 * SEGMENT_BYTES);
  expect(life.spool.reports).toEqual({ signed: 800, answered: 800, proven: 795 });
  const kept = life.texts();
  expect(kept.has("report 10000")).toBe(false);
  for (let report = 0; report < 5 * KEEP_DAYS; report++) {
    expect(kept).toContain(`report ${life.signed - 1 - report}`);
  }
  life.spool.close();
});

test("a report is gone only if it was proven 35 days before, and then it is gone with its segment", () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("sign" as const), count: fc.integer({ min: 1, max: 6 }) }),
    fc.record({ kind: fc.constant("answer" as const) }),
    fc.record({
      kind: fc.constant("prove" as const),
      count: fc.integer({ min: 1, max: 3 }),
      spare: fc.boolean(),
    }),
    fc.record({ kind: fc.constant("wait" as const), days: fc.constantFrom(1, 17, 34, 35, 36) }),
    fc.record({ kind: fc.constant("again" as const), first: fc.nat(30) }),
    fc.record({ kind: fc.constant("restart" as const) }),
  );
  fc.assert(
    fc.property(fc.array(step, { minLength: 10, maxLength: 40 }), (steps) => {
      const life = new Life();
      const provenAt = new Map<number, number>();
      for (const each of steps) {
        if (each.kind === "sign") life.sign(each.count);
        else if (each.kind === "answer") life.answer();
        else if (each.kind === "wait") life.now += each.days * DAY_MS;
        else if (each.kind === "restart") life.restart();
        else if (each.kind === "again") {
          const reports: [number, number][] = [[each.first, each.first + 2]];
          const kept = life.spool.kept();
          life.spool.repeat({ at: life.now, reports });
          for (const at of [each.first, each.first + 1]) {
            if (kept.some(([from, to]) => from <= at && at < to)) provenAt.delete(at);
          }
        } else {
          const open = [...life.spool.open()].slice(0, each.count);
          life.prove(each.count, each.spare);
          for (const { first, results } of open) {
            const from = first + (each.spare ? 1 : 0);
            for (let at = from; at < first + results.length; at++) provenAt.set(at, life.now);
          }
        }
        const before = life.texts();
        life.spool.prune(life.now);
        const after = life.texts();
        for (let at = 0; at < life.signed; at++) {
          const age = life.now - (provenAt.get(at) ?? life.now);
          const text = `report ${at}`;
          if (before.has(text) && age < KEEP_DAYS * DAY_MS) expect(after).toContain(text);
        }
      }
      life.spool.close();
    }),
    { numRuns: 25 },
  );
});

test("a report that proves nothing keeps its own segment, and no other", () => {
  const life = new Life();
  life.sign(2);
  life.answer();
  life.prove(1, true);
  for (let day = 0; day < 60; day++) {
    life.sign(20);
    life.answer();
    life.prove(1);
    life.now += DAY_MS;
  }
  life.spool.prune(life.now);
  const [first, ...others] = life.spool.kept();
  expect(first?.[0]).toBe(0);
  expect(others[0]?.[0]).toBeGreaterThan(300);
  life.spool.close();
});

test("nothing goes while the log contradicts itself", () => {
  const life = new Life();
  for (let day = 0; day < 8; day++) {
    life.sign(20);
    life.answer();
    life.prove(1);
  }
  life.now += 100 * DAY_MS;
  life.spool.see("", "inconsistent");
  life.spool.prune(life.now);
  expect(life.has(0)).toBe(true);
  life.spool.see("", "");
  life.spool.prune(life.now);
  expect(life.has(0)).toBe(false);
  life.spool.close();
});

test("a receipt that is open is kept, though its reports are proven by a later one", () => {
  const life = new Life();
  life.sign(3);
  life.answer();
  life.spool.repeat({ at: life.now, reports: [[0, 3]] });
  const results = Array.from({ length: 3 }, () => ({ code: "accepted", digest: DIGEST }));
  life.spool.answer({ results, at: life.now, receipt: "later", first: 0 });
  life.spool.prove({ promise: 1, at: life.now, reports: [[0, 3]] });
  for (let day = 0; day < 8; day++) life.sign(20);
  life.now += 100 * DAY_MS;
  life.spool.prune(life.now);
  expect([...life.spool.open()]).toMatchObject([{ promise: 0, receipt: "receipt" }]);
  life.spool.prove({ promise: 0, at: life.now, reports: [] });
  life.now += 100 * DAY_MS;
  life.spool.prune(life.now);
  expect(life.has(0)).toBe(false);
  life.spool.close();
});

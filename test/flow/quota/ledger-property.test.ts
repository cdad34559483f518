import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { formatSignedComputeMs } from "../../../src/core/charge.ts";
import { quotaAt } from "../../../src/core/quota/quota.ts";
import type { Held } from "../../../src/flow/quota/copy.ts";
import { type Ledger, openLedger } from "../../../src/flow/quota/ledger.ts";
import { refresh } from "../../../src/flow/usage/fold.ts";
import { rebuild } from "../../../src/flow/usage/rebuild.ts";
import type { Agent, Build } from "../../builds.ts";
import type { TestLedger } from "../../ledger.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { failOn } from "../chain.ts";
import { sha256 } from "../door.ts";
import { HOSTED, OWN } from "../history.ts";
import { adjustMonth } from "../money/entries.ts";
import { LIMIT, newLedger, PACK, withdraw } from "./logs.ts";
import { countedOf } from "./oracle.ts";

const NAMESPACES = ["1", "2", "3"];
const INSTANTS = ["2026-11-28T12:00:00.000Z", "2026-12-01T00:00:00.000Z"];
const clock = { now: () => Date.UTC(2026, 10, 28) };

let db: FreshDatabase;
const opened: Ledger[] = [];

beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(async () => {
  await Promise.all(opened.map((ledger) => ledger.close()));
  await db.drop();
});

/** One process; it polls only if it lives for a day. */
function process(): Ledger {
  const ledger = openLedger({ sql: db.reader, clock, failed: failOn, pollMs: 86_400_000 });
  opened.push(ledger);
  return ledger;
}

const months = fc.constantFrom("2026-08-01", "2026-09-01", "2026-10-01", "2026-11-01");
const namespaces = fc.constantFrom(...NAMESPACES);

const build = fc.record({
  kind: fc.constant("build" as const),
  build: fc.record({
    job: fc.integer({ min: 1, max: 40 }),
    runner: fc.constantFrom(HOSTED, HOSTED, OWN),
    namespace: fc.integer({ min: 1, max: 3 }),
    duration: fc.bigInt({ min: 0n, max: 1_000_000n }),
    finished: fc.constantFrom(
      "2026-08-31T23:59:59.999Z",
      "2026-09-30T23:59:59.999Z",
      "2026-10-01T00:00:00.000Z",
      "2026-10-31T12:00:00.000Z",
      "2026-11-01T00:00:00.000Z",
    ),
    reason: fc.constantFrom("", "script_failure", "runner_system_failure"),
  }) satisfies fc.Arbitrary<Build>,
});
const limit = fc.record({
  kind: fc.constant("limit" as const),
  namespace_id: namespaces,
  monthly_minutes: fc.integer({ min: 0, max: 20 }).map(String),
  effective_from: months.map((month) => `${month}T00:00:00.000Z`),
});
const pack = fc.record({
  kind: fc.constant("pack" as const),
  namespace_id: namespaces,
  pack_id: fc.constantFrom('o"1', "o2"),
  minutes: fc.integer({ min: 0, max: 5 }).map(String),
  purchased_in: months,
  expires_in: fc.constantFrom("2026-11-01", "2027-03-01"),
});
const adjustment = fc.record({
  kind: fc.constant("adjust" as const),
  usage_month: months,
  lines: fc.array(
    fc.record({
      namespace_id: namespaces,
      amount: fc
        .integer({ min: -2_000_000_000, max: 500_000_000 })
        .map((amount) => formatSignedComputeMs(BigInt(amount) * 1_000n)),
    }),
    { minLength: 1, maxLength: 3 },
  ),
});
const other = fc.record({
  kind: fc.constantFrom(
    "close" as const,
    "withdraw" as const,
    "seal" as const,
    "refresh" as const,
    "rebuild" as const,
    "read" as const,
  ),
});
const step = fc.oneof(
  { weight: 8, arbitrary: build },
  { weight: 2, arbitrary: limit },
  { weight: 2, arbitrary: pack },
  { weight: 3, arbitrary: adjustment },
  { weight: 4, arbitrary: other },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** One history in the making. */
class Play {
  readonly ledger: TestLedger;
  readonly #agent: Agent;
  readonly #unclosed = ["2026-08-01", "2026-09-01", "2026-10-01"];
  readonly #closings: { index: bigint; month: string }[] = [];
  #versions = 0;
  #sealed = 0n;

  constructor() {
    ({ ledger: this.ledger, agent: this.#agent } = newLedger());
    this.ledger.now = Date.UTC(2026, 10, 2);
  }

  async do(step: Step): Promise<void> {
    const { ledger } = this;
    this.#versions += 1;
    const source_version = String(this.#versions);
    switch (step.kind) {
      case "build":
        ledger.report(this.#agent, step.build);
        return;
      case "limit": {
        const { kind: _, ...said } = step;
        ledger.append("quota", { ...LIMIT, ...said, source_version });
        return;
      }
      case "pack": {
        const { kind: _, ...said } = step;
        ledger.append("pack", { ...PACK, ...said, source_version });
        return;
      }
      case "adjust":
        adjustMonth(ledger, step.usage_month, ...step.lines);
        return;
      case "close":
        for (const month of this.#unclosed.splice(0, 1)) {
          this.#closings.push({ index: ledger.size, month });
          ledger.closeMonth(month);
        }
        return;
      case "withdraw":
        for (const { index, month } of this.#closings.splice(-1)) {
          withdraw(ledger, index);
          this.#unclosed.unshift(month);
        }
        return;
      case "seal":
        await ledger.load(db.owner);
        if (ledger.size > this.#sealed) await ledger.seal(db.owner);
        this.#sealed = ledger.size;
        return;
      case "refresh":
        await refresh({ sql: db.writer, clock });
        return;
      case "rebuild":
        await db.owner`delete from usage_buckets where log = ${ledger.log}`;
        await rebuild({ sql: db.owner, clock, hash: sha256 }, { write: true });
        return;
      case "read":
    }
  }
}

function expectCounted(ledger: TestLedger, namespace: string, held: Held | undefined): void {
  if (held === undefined) throw new Error("nothing is held");
  const { jobs, touched, used, ...counted } = countedOf(ledger, namespace, held.asOf);
  expect(held.facts).toMatchObject(counted);
  expect(held.touched).toBe(touched);
  for (const month of ["2026-10-01", "2026-11-01"]) {
    expect(held.facts.used.get(month) ?? 0n).toBe(used.get(month) ?? 0n);
  }
  // Of a month that is told all is told.
  for (const [month, amount] of held.facts.used) expect(amount).toBe(used.get(month));
  for (const instant of INSTANTS) {
    expect(quotaAt(held.facts, instant)).toEqual(quotaAt({ ...counted, used }, instant));
  }
  const settled = jobs.filter(({ index }) => index >= held.since).map(({ job }) => job);
  expect([...held.settled(held.since)].sort()).toEqual(settled.sort());
}

test("figures equal an independent count over the entries' bytes at every index, in every process, with folds and rebuilds at any place", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 40 }), async (steps) => {
      const play = new Play();
      const { ledger } = play;
      const [always, seldom] = [process(), process()];
      for (const [i, each] of steps.entries()) {
        await play.do(each);
        await ledger.load(db.owner);
        const asOf = ledger.size;
        const namespace = NAMESPACES[i % NAMESPACES.length] ?? "";
        const held = await always.hold({ log: ledger.log, namespace }, { asOf });
        expect(held.asOf).toBe(asOf);
        expectCounted(ledger, namespace, held);
        if (each.kind !== "read") continue;
        const { held: straight } = await process().read(ledger.log, NAMESPACES);
        for (const namespace of NAMESPACES) {
          const key = { log: ledger.log, namespace };
          expectCounted(ledger, namespace, await seldom.hold(key, { asOf }));
          expectCounted(ledger, namespace, straight.get(namespace));
        }
      }
      for (const namespace of NAMESPACES) {
        const key = { log: ledger.log, namespace };
        const wants = { asOf: ledger.size };
        const [one, other] = [await always.hold(key, wants), await seldom.hold(key, wants)];
        expectCounted(ledger, namespace, one);
        expectCounted(ledger, namespace, other);
      }
    }),
    { numRuns: 8 },
  );
});

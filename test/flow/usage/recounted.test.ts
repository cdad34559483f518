import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { formatSignedComputeMs } from "../../../src/core/charge.ts";
import type { Entry, EntryOf } from "../../../src/core/entry.ts";
import { refresh } from "../../../src/flow/usage/fold.ts";
import { closeMonth } from "../../../src/store/months.ts";
import { transact } from "../../../src/store/transact.ts";
import { readWatermark } from "../../../src/store/watermarks.ts";
import type { Build } from "../../builds.ts";
import type { TestLedger } from "../../ledger.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { reportIn } from "../door.ts";
import { clock, HOSTED, OWN } from "../history.ts";
import { adjustMonth, closedMonth } from "../money/entries.ts";
import { newLedger } from "../quota/logs.ts";
import { expectEqualToRecount } from "./counted.ts";

let db: FreshDatabase;

beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(async () => {
  await db.drop();
});

async function folded({ log }: TestLedger): Promise<bigint> {
  return (await readWatermark(db.reader, log))?.size ?? 0n;
}

const build = fc.record({
  job: fc.integer({ min: 1, max: 12 }),
  runner: fc.constantFrom(HOSTED, OWN),
  namespace: fc.integer({ min: 1, max: 3 }),
  project: fc.integer({ min: 10, max: 12 }),
  duration: fc.bigInt({ min: 0n, max: 100_000_000n }),
  finished: fc.constantFrom(
    "2026-09-30T23:59:59.999Z",
    "2026-10-01T00:00:00.000Z",
    "2026-10-31T12:00:00.000Z",
    "2026-11-01T00:00:00.000Z",
  ),
  reason: fc.constantFrom("", "script_failure", "runner_system_failure"),
}) satisfies fc.Arbitrary<Build>;

interface Change {
  /** Of the ledger's usages, or undefined: a namespace's month. */
  of: number | undefined;
  amount: bigint;
}
const AMOUNT_MAX = 10n ** 14n;
const change = fc.record({
  of: fc.option(fc.nat({ max: 30 }), { nil: undefined }),
  amount: fc.bigInt({ min: -AMOUNT_MAX, max: AMOUNT_MAX }),
}) satisfies fc.Arbitrary<Change>;

type Step =
  | { kind: "build"; build: Build }
  | { kind: "adjust"; change: Change }
  | { kind: "close" | "finish" | "seal" | "refresh" };
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: build.map((made) => ({ kind: "build" as const, build: made })) },
  { weight: 2, arbitrary: change.map((made) => ({ kind: "adjust" as const, change: made })) },
  { weight: 1, arbitrary: fc.constantFrom<Step>({ kind: "seal" }, { kind: "refresh" }) },
  { weight: 1, arbitrary: fc.constantFrom<Step>({ kind: "close" }, { kind: "finish" }) },
);

/** Amounts as they come: what may be adjusted is not asked here, only what it sums up to. */
function adjust(ledger: TestLedger, { of, amount }: Change): void {
  const usages = ledger.written.map(({ entry }) => entry).filter(isHosted);
  const entry = of === undefined ? undefined : usages[of % (usages.length || 1)];
  const { usage_month } = entry?.body ?? { usage_month: "2026-10-01" };
  const job = entry && reportIn(entry.body.jws).job;
  adjustMonth(ledger, usage_month, {
    amount: formatSignedComputeMs(amount),
    entry: entry === undefined ? "" : String(entry.index),
    namespace_id: job?.root_namespace_id ?? "1",
    project_id: job?.project_id ?? (amount % 2n === 0n ? "" : "10"),
  });
}

function isHosted(entry: Entry): entry is EntryOf<"usage"> {
  return entry.kind === "usage" && entry.body.billable;
}

/** The last cut-off is finished, once figures reach it: its rows are written, and no longer in the open views. */
async function finish(ledger: TestLedger, finished: Set<string>): Promise<void> {
  const closing = ledger.prefix.lastClosing;
  if (closing === undefined || finished.has(closing.month)) return;
  if ((await folded(ledger)) < closing.index) return;
  closedMonth(ledger, closing);
  await ledger.load(db.owner);
  await transact(db.writer, (tx) => closeMonth(tx, ledger.log, closing.month, closing.index));
  finished.add(closing.month);
}

test("T50: rollups equal a recount of the log at the same size, for every key and month", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
      const { ledger, agent } = newLedger();
      const unclosed = ["2026-09-01", "2026-10-01"];
      let sealed = 0n;
      const seal = async () => {
        await ledger.load(db.owner);
        if (ledger.size > sealed) await ledger.seal(db.owner);
        sealed = ledger.size;
      };
      const finished = new Set<string>();
      for (const each of steps) {
        if (each.kind === "build") ledger.report(agent, each.build);
        else if (each.kind === "adjust") adjust(ledger, each.change);
        else if (each.kind === "finish") await finish(ledger, finished);
        else if (each.kind === "seal") await seal();
        else if (each.kind === "refresh") await refresh({ sql: db.writer, clock });
        else for (const month of unclosed.splice(0, 1)) ledger.closeMonth(month);
      }
      await seal();
      ledger.report(agent, { job: 99, runner: HOSTED });
      await ledger.load(db.owner);
      await refresh({ sql: db.writer, clock });
      expect(await folded(ledger)).toBe(sealed);
      await finish(ledger, finished);
      await expectEqualToRecount(db, ledger, sealed);
    }),
    { numRuns: 12 },
  );
});

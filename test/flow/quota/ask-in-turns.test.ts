/** A host that runs thousands of jobs of one namespace. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Ask, Command } from "../../../src/core/quota/live.ts";
import { askInTurns } from "../../../src/flow/quota/ask-in-turns.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { openProcess, type QuotaProcess, run } from "./reconciling.ts";
import { QuotaLog, START } from "./told.ts";

const ANY_AGE = { maxAgeMs: Number.MAX_SAFE_INTEGER };
const MINUTE_MS = 60_000;

let db: FreshDatabase;
let process: QuotaProcess;
const log = new QuotaLog(1);

beforeAll(async () => {
  db = await freshDatabase();
  log.limit(1, 1);
  log.limit(2, 1);
  await log.load(db.owner);
  process = await openProcess({ sql: db.writer, clock: { now: () => START + 86_400_000 } });
});
afterAll(async () => {
  await process.close();
  await db.drop();
});

/** How many asks each command had. */
function counting(): { asking: QuotaProcess; sizes: number[] } {
  const sizes: number[] = [];
  const live: QuotaProcess["live"] = {
    ...process.live,
    run: (key, command: Command) => {
      sizes.push(command.asks.length);
      return process.live.run(key, command);
    },
  };
  return { asking: { ...process, live }, sizes };
}

test("what is said of thousands of jobs is said in turns, and all are answered by what is live in the end", async () => {
  const { asking, sizes } = counting();
  const key = { log: log.log, namespace: "1" };
  // A minute each: beyond the limit and its grace of 1,000 minutes from the third turn on.
  const asks: Ask[] = Array.from({ length: 1_200 }, (_, i) => run(process, i, MINUTE_MS));
  const { live, results } = await askInTurns(asking, key, asks, ANY_AGE);
  expect(sizes).toEqual([500, 500, 200]);
  expect(live).toBe(1_200n * 60_000n * 1_000_000n);
  expect(results).toEqual(asks.map(() => ({ allowed: false, known: true })));
});

test("starts in turns are granted in their order, each minute once", async () => {
  const { asking, sizes } = counting();
  const key = { log: log.log, namespace: "2" };
  const until = process.clock.now() + 300_000;
  const asks = Array.from({ length: 600 }, (_, i): Ask => {
    return { kind: "start", job: String(i), floor: 100n * 1_000_000n, until };
  });
  const { results } = await askInTurns(asking, key, asks.toReversed(), ANY_AGE);
  expect(sizes).toEqual([500, 100]);
  expect(results.map(({ allowed }) => allowed)).toEqual(asks.map(() => true));
  const more = await askInTurns(
    asking,
    key,
    [{ kind: "start", job: "700", floor: 1n, until }],
    ANY_AGE,
  );
  expect(more.results).toEqual([{ allowed: false, known: false }]);
});

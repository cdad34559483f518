/** Many logs at once: how long an entry waits for a checkpoint that covers it. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { create, NewLog } from "../src/flow/log/create.ts";
import { type SealLoop, sealLoop } from "../src/flow/log/seal-loop.ts";
import type { SignedReport } from "../src/flow/report/verify.ts";
import type { Sql } from "../src/store/connect.ts";
import type { Fleet } from "./fleet.ts";
import type { Context } from "./history.ts";
import { found, KEYRING, type Ledger, openLedger } from "./ledger.ts";
import type { Row } from "./measure.ts";
import type { Sizes } from "./sizes.ts";

const BOUND_MS = 1_000;
/** What the agents of a busy log deliver at once, and how often; they begin spread over one period. */
const BATCH = 10;
const PERIOD_MS = 4_000;
/** Longer than a loop rests between two looks. */
const SETTLE_MS = 1_000;
const LONG_AGO = "2020-01-01T00:00:00.000Z";

/** The last entry of a batch, and when its commit was answered (epoch milliseconds). */
interface Committed {
  log: string;
  index: bigint;
  at: number;
}

export async function logs({ folder, sizes, say, defer }: Context): Promise<Row> {
  const ledger = await openLedger(join(folder, "logs"));
  defer(ledger.close);
  const fleets = await populate(ledger, sizes);
  const stop = new AbortController();
  const sealing = sealLoop({ ...ledger.sealer, signal: stop.signal, onFailure: fail });
  await settled(sealing);
  say(`${sizes.logs} logs are sealed`);
  const count = Math.ceil((sizes.trafficSeconds * 1_000) / PERIOD_MS);
  const deliveries = fleets.map((fleet) => ({
    log: fleet.log,
    batches: Array.from({ length: count }, () => fleet.verdicts(BATCH, 1)),
  }));
  const phase = PERIOD_MS / fleets.length;
  const committed = await Promise.all(
    deliveries.map((delivery, i) => traffic(ledger, delivery, i * phase)),
  );
  await settled(sealing);
  stop.abort();
  await sealing.done;
  const lags = await lagsOf(ledger.sql, committed.flat());
  return {
    row: `99th percentile from commit to checkpoint, ${sizes.logs} logs, ${sizes.busyLogs} busy`,
    against: "the bound of a second",
    bound: { kind: "at-most", ratio: 1 },
    unit: "ms",
    a: [percentile(lags, 0.99)],
    b: [BOUND_MS],
    notes: {
      median: `${percentile(lags, 0.5)} ms`,
      longest: `${percentile(lags, 1)} ms`,
      traffic: `a batch of ${BATCH} each ${PERIOD_MS / 1_000} s for each, ${sizes.trafficSeconds} s long`,
    },
  };
}

/** All logs are there from the start; only those that get traffic have a key. */
async function populate({ appender }: Ledger, sizes: Sizes): Promise<Fleet[]> {
  const fleets: Fleet[] = [];
  for (let i = 0; i < sizes.logs; i += 1) {
    const unique_id = `bench-${i}`;
    if (i < sizes.busyLogs) {
      fleets.push((await found(appender, unique_id)).fleet);
    } else {
      const genesis = { unique_id, platform: "dotcom", billing_from: LONG_AGO };
      const creating = { appender, keyring: KEYRING, random: randomBytes, roles: [] };
      await create(creating, "p_bench", NewLog.parse(genesis));
    }
  }
  return fleets;
}

async function traffic(
  { appender }: Ledger,
  { log, batches }: { log: string; batches: readonly SignedReport[][] },
  after: number,
): Promise<Committed[]> {
  const committed: Committed[] = [];
  let next = Date.now() + after;
  for (const batch of batches) {
    await delay(Math.max(0, next - Date.now()));
    const answers = await appender.reports(log, batch);
    committed.push({ log, index: BigInt(answers.at(-1)?.index ?? -1), at: Date.now() });
    next += PERIOD_MS;
  }
  return committed;
}

/** Two looks that found nothing: what was committed just after the first is sealed as well. */
async function settled({ lag }: SealLoop): Promise<void> {
  for (let quiet = 0; quiet < 2; quiet = lag().logs === 0 ? quiet + 1 : 0) await delay(SETTLE_MS);
}

/** Milliseconds from each commit to the first checkpoint that covers it, ascending. */
async function lagsOf(sql: Sql, committed: readonly Committed[]): Promise<number[]> {
  const lags: number[] = [];
  for (const { log, index, at } of committed) {
    const [row] = await sql<{ sealed_at: Date }[]>`
      select sealed_at
      from checkpoints
      where log = ${log} and size > ${index}
      order by size
      limit 1`;
    if (row === undefined) throw new Error(`bench: entry ${index} of ${log} was never sealed`);
    lags.push(Math.max(0, row.sealed_at.getTime() - at));
  }
  return lags.sort((a, b) => a - b);
}

function percentile(ascending: readonly number[], share: number): number {
  return ascending[Math.ceil(share * ascending.length) - 1] ?? Number.NaN;
}

function fail(error: unknown): never {
  throw error;
}

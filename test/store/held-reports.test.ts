/** What the database reads of reports that wait, against what decoding them says. */
import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { countUnresolved, readHeld } from "../../src/store/held-reports.ts";
import { limitTransaction } from "../../src/store/transaction.ts";
import { type FreshDatabase, freshDatabase } from "../postgres.ts";

const UNTIL = "2026-11-01T00:00:00.000Z";

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());

interface Waiting {
  kind: "conflict" | "hold";
  job: string;
  /** Of any length, so that its base64 needs any padding; and of any letters. */
  id: string;
  finished: string;
  /** When what stands had finished, of a conflict. */
  stood: string;
  ended: boolean;
}

const instants = fc
  .date({ min: new Date("2026-10-31"), max: new Date("2026-11-02"), noInvalidDate: true })
  .map((date) => date.toISOString());
const waiting: fc.Arbitrary<Waiting> = fc.record({
  kind: fc.constantFrom("conflict", "hold"),
  job: fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }).map(String),
  id: fc.string({ unit: "binary" }),
  finished: instants,
  stood: instants,
  ended: fc.boolean(),
});

async function stored(log: string, entries: readonly Waiting[]): Promise<void> {
  const { owner } = database;
  for (const [i, { ended, finished, id, job, kind, stood }] of entries.entries()) {
    const [stands, index] = [2 * i, 2 * i + 1];
    const usage = { finished_at: finished };
    const payload = Buffer.from(JSON.stringify({ id, job: { id: job }, usage }));
    const jws = `header.${payload.toString("base64url")}.signature`;
    const of = kind === "conflict" ? { stands: String(stands) } : {};
    const bytes = Buffer.from(JSON.stringify({ body: { jws, ...of }, kind }));
    const leaf = randomBytes(32);
    await owner`
      insert into entries (log, index, kind, at, prev, leaf, bytes)
      values (${log}, ${index}, ${kind}, now(), ${leaf}, ${leaf}, ${bytes})`;
    await owner`
      insert into entries (
        log, index, kind, at, prev, leaf, bytes, tracking, job_id, project_id, namespace_id, runner_uuid,
        runner_id, machine_type, duration_ms, compute_ms, not_billable, usage_month, billing_month, finished_at
      )
      values (
        ${log}, ${stands}, 'usage', now(), ${leaf}, ${leaf}, 'x', 'hosted', 1, 1, 1, '', 1, '', 1, 1, '',
        '2026-10-01', '2026-10-01', ${stood}
      )`;
    if (!ended) continue;
    await owner`insert into ${owner(`${kind}_ends`)} values (${log}, ${index}, ${10_000 + i}, 'x')`;
  }
}

test("of holds and conflicts those that nobody ended and that ran before a month's end are counted, and the first named", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(waiting, { maxLength: 30 }), async (entries) => {
      const log = randomBytes(16).toString("hex");
      await stored(log, entries);
      for (const kind of ["conflict", "hold"] as const) {
        const open = entries.flatMap((each, i) => {
          const ran = each.finished < UNTIL || (kind === "conflict" && each.stood < UNTIL);
          return each.kind === kind && !each.ended && ran ? [BigInt(2 * i + 1)] : [];
        });
        const found = await database.writer.begin(async (tx) => {
          return await countUnresolved(tx, log, { kind, until: UNTIL, below: 100_000n });
        });
        expect(found).toEqual({ count: BigInt(open.length), first: open[0] ?? null });
      }
    }),
    { numRuns: 15 },
  );
});

test("a job's report that is held is found by the job's number, and none that was ended", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(waiting, { maxLength: 30 }), async (entries) => {
      const log = randomBytes(16).toString("hex");
      await stored(log, entries);
      const open = entries.flatMap(({ ended, job, kind }, i): [string, bigint][] => {
        return kind === "hold" && !ended ? [[job, BigInt(2 * i + 1)]] : [];
      });
      const asked = entries.map(({ job }) => job);
      expect(await readHeld(database.writer, log, asked)).toEqual(new Map(open));
      expect(await readHeld(database.writer, log, ["0"])).toEqual(new Map());
    }),
    { numRuns: 15 },
  );
});

test("4,000 that wait are counted within the time that a transaction at the head may take", async () => {
  const { owner, writer } = database;
  const log = randomBytes(16).toString("hex");
  const payload = Buffer.from(
    JSON.stringify({ id: "x".repeat(1_000), job: { id: "7" }, usage: { finished_at: UNTIL } }),
  );
  const jws = `${"h".repeat(120)}.${payload.toString("base64url")}.${"s".repeat(86)}`;
  const bytes = Buffer.from(JSON.stringify({ body: { jws }, kind: "hold" }));
  const leaf = randomBytes(32);
  await owner`
    insert into entries (log, index, kind, at, prev, leaf, bytes)
    select ${log}, i, 'hold', now(), ${leaf}, ${leaf}, ${bytes}
    from generate_series(1, 4000) as i`;
  const found = await writer.begin(async (tx) => {
    await limitTransaction(tx);
    const until = "2026-12-01T00:00:00.000Z";
    return await countUnresolved(tx, log, { kind: "hold", until, below: 5_000n });
  });
  expect(found).toEqual({ count: 4_000n, first: 1n });
});

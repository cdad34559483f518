import { rename } from "node:fs/promises";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { sealDirty, sealLoop } from "../../../src/flow/log/seal-loop.ts";
import { type Archive, ArchiveError } from "../../../src/store/archive.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { CHAIN_START, Chain, checkpointed, failOn, sealerOf } from "../chain.ts";
import { archiveFolder } from "../folder.ts";

const OFTEN = { interval: 5, timeout: 20_000 };

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

test("seals every dirty log, whatever becomes of another, until it is told to stop", async () => {
  const good = new Chain(8);
  const bad = new Chain(9);
  const sealer = sealerOf(db.writer, await archiveFolder());
  await good.growTo(db.writer, 2);
  await bad.growTo(db.writer, 2);
  await db.superuser.begin(async (tx) => {
    await tx`alter table entries disable trigger entries_append_only`;
    await tx`update entries set kind = 'hold' where log = ${bad.log} and index = 1`;
    await tx`alter table entries enable always trigger entries_append_only`;
  });
  const stop = new AbortController();
  const failed = new Set<string | undefined>();
  const loop = sealLoop({
    ...sealer,
    intervalMs: 1,
    signal: stop.signal,
    onFailure: (_, log) => failed.add(log),
  });
  onTestFinished(() => stop.abort());
  await expect.poll(() => checkpointed(db.reader, good.log), OFTEN).toEqual([2n]);
  await good.growTo(db.writer, 9);
  await expect.poll(() => checkpointed(db.reader, good.log), OFTEN).toEqual([2n, 9n]);
  expect(failed).toContain(bad.log);
  expect(await checkpointed(db.reader, bad.log)).toEqual([]);
  expect(loop.lag().ms).toBeGreaterThanOrEqual(0);
  stop.abort();
  await loop.done;
  await good.growTo(db.writer, 12);
  expect(await checkpointed(db.reader, good.log)).toEqual([2n, 9n]);
});

test("says when a round is over, after all of its failures, also while the archive refuses every log", async () => {
  const chains = [11, 12].map((number) => new Chain(number));
  const root = await archiveFolder();
  const sealer = sealerOf(db.writer, root);
  for (const chain of chains) await chain.growTo(db.writer, 2);
  await rename(root, `${root}.away`);
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const rounds: Set<string | undefined>[] = [];
  let round = new Set<string | undefined>();
  const { done } = sealLoop({
    ...sealer,
    intervalMs: 1,
    signal: stop.signal,
    onFailure: (_, log) => round.add(log),
    onRound: () => {
      rounds.push(round);
      round = new Set();
    },
  });
  const ours = () => chains.filter(({ log }) => rounds.at(-1)?.has(log)).length;
  await expect.poll(() => rounds.length, OFTEN).toBeGreaterThan(2);
  expect(ours()).toBe(2);
  await rename(`${root}.away`, root);
  sealer.now += 1_000;
  await expect.poll(ours, OFTEN).toBe(0);
  stop.abort();
  await done;
});

test("says how many logs and entries wait, and for how long", async () => {
  const fresh = await freshDatabase();
  onTestFinished(() => fresh.drop());
  const root = await archiveFolder();
  const sealer = sealerOf(fresh.writer, root);
  for (const number of [1, 2]) await new Chain(number).growTo(fresh.writer, 4);
  sealer.now = CHAIN_START + 2_500;
  const lags: unknown[] = [];
  await sealDirty(sealer, failOn, { onLag: (lag) => lags.push(lag) });
  await sealDirty(sealer, failOn, { onLag: (lag) => lags.push(lag) });
  expect(lags).toEqual([
    { logs: 2, entries: 8n, ms: 2_500 },
    { logs: 0, entries: 0n, ms: 0 },
  ]);
});

test("goes on when the database was away", async () => {
  const chain = new Chain(10);
  const sealer = sealerOf(db.writer, await archiveFolder());
  await chain.growTo(db.writer, 1);
  const stop = new AbortController();
  const failures: unknown[] = [];
  let away = true;
  const sql = new Proxy(sealer.sql, {
    apply: (query, self, parts) => {
      if (away) throw new Error("away");
      return Reflect.apply(query, self, parts);
    },
  });
  const { done } = sealLoop({
    ...sealer,
    sql,
    intervalMs: 1,
    signal: stop.signal,
    onFailure: (error) => failures.push(error),
  });
  onTestFinished(() => stop.abort());
  await expect.poll(() => failures.length, OFTEN).toBeGreaterThan(0);
  away = false;
  await expect.poll(() => checkpointed(db.reader, chain.log), OFTEN).toEqual([1n]);
  stop.abort();
  await done;
});

test("of logs that share a transaction one that cannot be signed keeps no other from being", async () => {
  const chains = [21, 22, 23].map((number) => new Chain(number));
  for (const chain of chains) await chain.growTo(db.writer, 5);
  const archive = folderArchive(await archiveFolder());
  const [, bad] = chains;
  const full: Archive = {
    ...archive,
    create: async (path, bytes) => {
      if (path === `${bad?.log}/checkpoint/5`)
        throw new ArchiveError("archive-unavailable", "full");
      return await archive.create(path, bytes);
    },
  };
  const failed: unknown[] = [];
  const sealer = sealerOf(db.writer, full);
  await sealDirty(sealer, (error, log) => failed.push([log, error]));
  const ours = failed.filter((failure) => Array.isArray(failure) && failure[0] === bad?.log);
  expect(ours).toEqual([[bad?.log, expect.objectContaining({ code: "archive-unavailable" })]]);
  for (const chain of chains) {
    const sizes = await checkpointed(db.reader, chain.log);
    expect(sizes).toEqual(chain === bad ? [] : [5n]);
  }
});

test("a long tail is sealed piece by piece, the last one too", async () => {
  const chain = new Chain(24);
  await chain.growTo(db.writer, 2_500);
  const sealer = sealerOf(db.writer, await archiveFolder());
  for (let round = 0; round < 4; round += 1) {
    await sealDirty(sealer, () => undefined, { entriesMax: 1_000n });
  }
  expect(await checkpointed(db.reader, chain.log)).toEqual([1_000n, 2_000n, 2_500n]);
});

test("a log that grows all the time is sealed no more often than said", async () => {
  const chain = new Chain(25);
  const sealer = sealerOf(db.writer, await archiveFolder());
  await chain.growTo(db.writer, 1);
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  let rounds = 0;
  const { done } = sealLoop({
    ...sealer,
    intervalMs: 3_600_000,
    signal: stop.signal,
    onFailure: () => undefined,
    onRound: () => {
      rounds += 1;
    },
  });
  await expect.poll(() => checkpointed(db.reader, chain.log), OFTEN).toEqual([1n]);
  await chain.growTo(db.writer, 2);
  const before = rounds;
  await expect.poll(() => rounds, OFTEN).toBeGreaterThan(before + 2);
  expect(await checkpointed(db.reader, chain.log)).toEqual([1n]);
  stop.abort();
  await done;
});

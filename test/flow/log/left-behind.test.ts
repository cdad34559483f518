/** Processes that were left on an old primary, or on a copy that was restored under them. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { retain } from "../../../src/flow/log/retain.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import { lockHead } from "../../../src/store/heads.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { CHAIN_START, Chain, sealerOf } from "../chain.ts";
import { archived, archiveFolder } from "../folder.ts";
import { ask, behind } from "../guarded.ts";

const MINUTE = 60_000;

let old: FreshDatabase;
let promoted: FreshDatabase;
beforeAll(async () => {
  [old, promoted] = await Promise.all([freshDatabase(), freshDatabase()]);
});
afterAll(() => Promise.all([old.drop(), promoted.drop()]));

function checkpointsIn(files: ReadonlyMap<string, string>): number[] {
  const sizes = Array.from(files.keys(), (path) => /\/checkpoint\/(\d+)$/.exec(path)?.[1]);
  return sizes.flatMap((size) => (size === undefined ? [] : [Number(size)])).sort((a, b) => a - b);
}

/** Both have the same log up to `shared`; the old primary saw it last when it was sealed to `seen`. */
async function failedOver(number: number, { seen, shared }: { seen: number; shared: number }) {
  const root = await archiveFolder();
  const [ours, theirs] = [new Chain(number), new Chain(number, shared)];
  const { log } = ours;
  const left = Object.assign(sealerOf(old.writer, root), { log });
  const next = Object.assign(sealerOf(promoted.writer, root), { log });
  if (seen > 0) {
    await ours.growTo(old.writer, seen);
    await seal(left);
    await theirs.growTo(promoted.writer, seen);
    await seal(next);
  } else {
    await ours.growTo(old.writer, 1);
  }
  await ask(left, log);
  const goOn = async (minute: number, size: number): Promise<void> => {
    next.now = CHAIN_START + minute * MINUTE;
    await theirs.growTo(promoted.writer, size);
    await seal(next);
  };
  const retained = async (minute: number): Promise<void> => {
    next.now = CHAIN_START + minute * MINUTE;
    while (await retain(next));
  };
  return { root, ours, log, left, goOn, retained };
}

describe("hours after a failover, when retention has gone over the archive, a process left on the old primary signs no second truth", () => {
  test.each([
    ["after the checkpoint that it saw last, which is kept", 20, 20],
    ["where it saw none", 0, 0],
  ])("%s", async (what, seen, shared) => {
    const { root, ours, left, goOn, retained } = await failedOver(seen + 1, { seen, shared });
    for (const [minute, size] of [
      [15, 42],
      [16, 50],
      [30, 300],
      [45, 600],
    ] as const) {
      await goOn(minute, size);
    }
    await retained(200);
    const before = checkpointsIn(await archived(root));
    expect(before, what).not.toContain(42);
    for (const size of [31, 40, 700]) {
      await ours.growTo(old.writer, size);
      await expect(seal(left)).rejects.toMatchObject(behind);
    }
    expect(checkpointsIn(await archived(root))).toEqual(before);
  });

  test("nor does it sign again what was removed, to go on from there", async () => {
    const { root, ours, left, goOn, retained } = await failedOver(3, { seen: 20, shared: 50 });
    await goOn(15, 42);
    await goOn(16, 60);
    await goOn(45, 600);
    await retained(200);
    const before = checkpointsIn(await archived(root));
    expect(before).toEqual([20, 60, 600]);
    await ours.growTo(old.writer, 55);
    await expect(seal(left)).rejects.toMatchObject(behind);
    expect(checkpointsIn(await archived(root))).toEqual(before);
  });

  test("even where somebody removed the claims: it looks first if it did not for half an hour", async () => {
    const { root, ours, log, left, goOn } = await failedOver(4, { seen: 20, shared: 20 });
    await goOn(15, 42);
    await rm(join(root, log, "claim"), { recursive: true });
    const before = checkpointsIn(await archived(root));
    await ours.growTo(old.writer, 31);
    left.now = CHAIN_START + 31 * MINUTE;
    await expect(seal(left)).rejects.toMatchObject(behind);
    expect(checkpointsIn(await archived(root))).toEqual(before);
  });
});

test("a backup that is restored into the server that goes on running lets nobody in, whatever a process saw last", async () => {
  const root = await archiveFolder();
  const [ours, backup] = [new Chain(5), new Chain(5, 20)];
  const { log } = ours;
  const [idle, busy] = [sealerOf(old.writer, root), sealerOf(old.writer, root)];
  await ours.growTo(old.writer, 10);
  await seal({ ...busy, log });
  await ask(idle, log);
  await ours.growTo(old.writer, 20);
  await seal({ ...busy, log });
  await backup.growTo(promoted.writer, 20);
  // Its sealer's last transactions are not in it, as where replication was cut off: that heals by itself.
  const restored = { ...sealerOf(promoted.writer, root), log };
  expect([await seal(restored), await seal(restored)]).toMatchObject([
    { size: 10n },
    { size: 20n },
  ]);
  await ours.growTo(old.writer, 60);
  await seal({ ...busy, log });
  // More than the idle process has seen, and less than was sealed since.
  await backup.growTo(promoted.writer, 25);
  for (const process of [idle, busy]) {
    await expect(ask({ ...process, sql: promoted.writer }, log)).rejects.toMatchObject(behind);
    await expect(seal({ ...process, sql: promoted.writer, log })).rejects.toMatchObject(behind);
  }
  expect(checkpointsIn(await archived(root))).toEqual([10, 20, 60]);
});

test("tables that were emptied and filled again are another copy, and a row that is written is not", async () => {
  const chain = new Chain(6);
  await chain.growTo(old.writer, 3);
  const copyOf = () => old.superuser.begin(async (tx) => (await lockHead(tx, chain.log))?.copy);
  const before = await copyOf();
  await chain.growTo(old.writer, 5);
  expect(await copyOf()).toBe(before);
  await old.superuser.begin(async (tx) => {
    await tx`create temporary table kept on commit drop as table heads`;
    await tx`alter table heads disable trigger all`;
    await tx`truncate heads`;
    await tx`insert into heads table kept`;
    await tx`alter table heads enable trigger all`;
  });
  expect(await copyOf()).not.toBe(before);
});

/** When the guard looks at the archive, and what it finds no fault with. */
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seal } from "../../../src/flow/log/seal.ts";
import { sealDirty } from "../../../src/flow/log/seal-loop.ts";
import type { Archive } from "../../../src/store/archive.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { Chain, checkpointed, sealerOf } from "../chain.ts";
import { archiveFolder } from "../folder.ts";
import {
  ask,
  behind,
  expectRefused,
  restoredAtTen,
  sealedAtTwenty,
  unavailable,
} from "../guarded.ts";

/** The database, and one that holds what a restored or left-behind copy of it would. */
let db: FreshDatabase;
let copy: FreshDatabase;
beforeAll(async () => {
  [db, copy] = await Promise.all([freshDatabase(), freshDatabase()]);
});
afterAll(() => Promise.all([db.drop(), copy.drop()]));

/** The archive, and how often it was asked for a log's latest checkpoint. */
function counted(root: string): Archive & { looks: number } {
  const archive = folderArchive(root);
  const counting = {
    ...archive,
    looks: 0,
    latestCheckpoint: (log: string) => {
      counting.looks += 1;
      return archive.latestCheckpoint(log);
    },
  };
  return counting;
}

describe("what is no reason to refuse", () => {
  test("a log that was never sealed, of which the archive holds nothing", async () => {
    const chain = new Chain(50);
    await chain.growTo(db.writer, 3);
    await ask(sealerOf(db.writer, await archiveFolder()), chain.log);
  });

  test("entries beyond the archive's checkpoint", async () => {
    const { chain, root } = await sealedAtTwenty(db, 51);
    await chain.growTo(db.writer, 600);
    await ask(sealerOf(db.writer, root), chain.log);
  });

  test("a checkpoint that a dead sealer left without its row, if the entries give its root", async () => {
    const { chain, root } = await sealedAtTwenty(db, 52);
    await chain.growTo(db.writer, 2_000);
    const archive = folderArchive(root);
    const dying: Archive = {
      ...archive,
      create: async (path, bytes) => {
        const outcome = await archive.create(path, bytes);
        if (path.includes("/checkpoint/")) throw new Error("dead");
        return outcome;
      },
    };
    const dead = sealerOf(db.writer, dying);
    await expect(seal({ ...dead, log: chain.log })).rejects.toThrow("dead");
    expect(await checkpointed(db.reader, chain.log)).toEqual([10n, 20n]);
    expect(await archive.latestCheckpoint(chain.log)).toMatchObject({ size: 2_000n });
    await ask(sealerOf(db.writer, root), chain.log);

    const restored = await restoredAtTen(copy, 52, 2_000);
    await expectRefused(copy, root, restored);
    expect(await seal({ ...sealerOf(db.writer, root), log: chain.log })).toMatchObject({
      size: 2_000n,
    });
  });
});

describe("when the archive is looked at", () => {
  test("at first use, and not while the head only grows, whoever appends and seals", async () => {
    const { chain, root } = await sealedAtTwenty(db, 60);
    const archive = counted(root);
    const sealer = sealerOf(db.writer, archive);
    await ask(sealer, chain.log);
    for (const size of [21, 22, 23]) {
      await chain.growTo(db.writer, size);
      if (size === 22) sealer.guard.committed(chain.log, 22n, chain.leaves[21] ?? new Uint8Array());
      await seal({ ...sealer, log: chain.log });
      await ask(sealer, chain.log);
    }
    expect(archive.looks).toBe(1);
  });

  test("again when the server has started anew", async () => {
    const { chain, root } = await sealedAtTwenty(db, 61);
    const archive = counted(root);
    const sealer = sealerOf(db.writer, archive);
    await ask(sealer, chain.log);
    await ask(sealer, chain.log, "another start");
    expect(archive.looks).toBe(2);
    await ask(sealer, chain.log, "another start");
    expect(archive.looks).toBe(2);
  });

  test("again when the head went back, or its leaf is another than was committed", async () => {
    const { chain, root } = await sealedAtTwenty(db, 62);
    const archive = counted(root);
    const sealer = sealerOf(db.writer, archive);
    await ask(sealer, chain.log);
    sealer.guard.committed(chain.log, 22n, chain.leaves[0] ?? new Uint8Array());
    await ask(sealer, chain.log);
    expect(archive.looks).toBe(2);
    sealer.guard.committed(chain.log, 20n, chain.leaves[0] ?? new Uint8Array());
    await ask(sealer, chain.log);
    expect(archive.looks).toBe(2);
    await chain.growTo(db.writer, 21);
    sealer.guard.committed(chain.log, 21n, chain.leaves[0] ?? new Uint8Array());
    await ask(sealer, chain.log);
    expect(archive.looks).toBe(3);
  });

  test("once a second while the log is refused, and no longer after a clock that stepped back", async () => {
    const { chain, root } = await sealedAtTwenty(db, 63);
    const archive = counted(root);
    const sealer = sealerOf(db.writer, archive);
    await rename(join(root, chain.log), join(root, "away"));
    const refused = async (looks: number): Promise<void> => {
      await expect(ask(sealer, chain.log)).rejects.toMatchObject(behind);
      expect(archive.looks).toBe(looks);
    };
    await refused(1);
    sealer.now += 999;
    await refused(1);
    sealer.now += 1;
    await refused(2);
    await rename(join(root, "away"), join(root, chain.log));
    await refused(2);
    sealer.now -= 3_600_000;
    await ask(sealer, chain.log);
    expect(sealer.guard.state().size).toBe(0);
  });
});

test("a refused log keeps no other log from being written and sealed", async () => {
  const { chain, root } = await sealedAtTwenty(db, 70);
  const other = new Chain(71);
  const sealer = sealerOf(db.writer, root);
  await rm(join(root, chain.log), { recursive: true });
  await expect(ask(sealer, chain.log)).rejects.toMatchObject(behind);
  await other.growTo(db.writer, 2);
  await ask(sealer, other.log);
  expect(await seal({ ...sealer, log: other.log })).toMatchObject({ size: 2n });
  expect(Array.from(sealer.guard.state().keys())).toEqual([chain.log]);
});

test("a log that was refused is written again without anybody appending: the sealing round asks", async () => {
  const { chain, root } = await sealedAtTwenty(db, 72);
  const sealer = sealerOf(db.writer, root);
  await rename(root, `${root}.away`);
  await expect(ask(sealer, chain.log)).rejects.toMatchObject(unavailable);
  await rename(`${root}.away`, root);
  sealer.now += 1_000;
  const failures: unknown[] = [];
  await sealDirty(sealer, (_, log) => failures.push(log));
  expect(failures).not.toContain(chain.log);
  expect(sealer.guard.state().has(chain.log)).toBe(false);
});

/**
 * A sealer that died past the newest checkpoint, and a database that then lost its tail: whatever it
 * left in the archive, a recovery ends in a log that is audited without a finding and seals on.
 */
import { cp } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { folderSource } from "../../../audit/folder.ts";
import { foresee, recover } from "../../../src/flow/log/recover.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import type { Archive } from "../../../src/store/archive.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import { auditSource } from "../../audit/archive.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { closeHouse, type Door, type House, openDoor, openHouse, vkeyOf } from "../door.ts";
import { archived, archiveFolder } from "../folder.ts";
import { begun, expectProven, fill, recoveringOn, restore, sealerOn } from "../restored.ts";

let house: House;
let door: Door;
let log: string;
/** Sealed to here. */
let first: bigint;
/** All that was appended; the last block is one of three. */
let head: bigint;

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
  log = await begun(door, "dying sealers", 1);
  await fill(door, log, 1, 30);
  first = (await seal({ ...sealerOn(house.database.writer, house.archive), log }))?.size ?? 0n;
  await fill(door, log, 1, 520, 1_000);
  const [row] = await house.database.reader`select size from heads where log = ${log}`;
  head = row?.["size"];
});
afterAll(() => closeHouse(house));

/** Files that a seal of all entries puts before its claim: three bundles, three tiles, one above. */
const FILES = 7;

/** An archive that stops after some of the files of its first put, or after what comes then. */
function dying(archive: Archive, survives: (file: number) => boolean, claims: boolean): Archive {
  return {
    ...archive,
    put: async (files) => {
      expect(files).toHaveLength(FILES);
      const kept = files.filter((_, i) => survives(i));
      await archive.put(kept);
      if (kept.length < files.length) throw new Error("killed");
    },
    create: async (path, bytes) => {
      if (claims) await archive.create(path, bytes);
      throw new Error("killed");
    },
  };
}

/** The archive as such a sealer leaves it. */
async function left(survives: (file: number) => boolean, claims = false): Promise<string> {
  const root = await archiveFolder();
  await cp(house.archive, root, { recursive: true });
  const sealer = sealerOn(house.database.writer, dying(folderArchive(root), survives, claims));
  await expect(seal({ ...sealer, log })).rejects.toThrow("killed");
  return root;
}

/** A database that has the log up to its checkpoint. */
async function withFirst<T>(work: (copy: FreshDatabase) => Promise<T>): Promise<T> {
  const copy = await freshDatabase();
  try {
    await restore(copy, house.archive, log);
    return await work(copy);
  } finally {
    await copy.drop();
  }
}

async function submit(copy: FreshDatabase, root: string, count: number, from: number) {
  const other = openDoor(copy.writer, { archive: root, seed: `${root} ${from}` });
  try {
    return await fill(other, log, 1, count, from);
  } finally {
    await other.close();
  }
}

/** Until nothing is new: a claimed tree goes first, by itself. */
async function sealOn(copy: FreshDatabase, root: string): Promise<void> {
  const sealer = sealerOn(copy.writer, root);
  while ((await seal({ ...sealer, log })) !== undefined);
}

/** Check, and an audit of the archive alone. */
async function expectSound(copy: FreshDatabase, root: string): Promise<void> {
  await expectProven(copy);
  const { findings } = await auditSource(folderSource(root, log), { log, vkeys: [vkeyOf(log)] });
  expect([...findings.byCode]).toEqual([]);
}

/** Which of the seven files are there: none, each one's absence, and each one alone. */
const SUBSETS = [
  0,
  ...Array.from({ length: FILES }, (_, i) => 1 << i),
  ...Array.from({ length: FILES }, (_, i) => 127 ^ (1 << i)),
  127,
];

describe("the database lost what the sealer had begun to archive", () => {
  test.each(SUBSETS)("and of its seven files there are %i", async (subset) => {
    const root = await left((file) => (subset >> file) % 2 === 1);
    await withFirst(async (copy) => {
      const recovering = recoveringOn(copy.writer, root, log);
      const foreseen = await foresee(recovering);
      const found = await recover(recovering);
      // What makes room is known when the rest stands.
      expect({ ...found, aside: 0 }).toEqual({ ...foreseen, aside: 0 });
      expect(found.after).toBe(first + found.unsigned);
      if (subset === 127) expect(found).toMatchObject({ after: head, aside: 0 });
      await submit(copy, root, 260, 5_000);
      await sealOn(copy, root);
      await expectSound(copy, root);
    });
  });

  test("and had claimed, or signed: nothing of it is lost, and the next seal is that one", async () => {
    const root = await left(() => true, true);
    await withFirst(async (copy) => {
      expect(await restore(copy, root, log)).toMatchObject({
        after: head,
        unsigned: head - first,
        aside: 0,
      });
      await submit(copy, root, 5, 5_000);
      const sealer = sealerOn(copy.writer, root);
      expect(await seal({ ...sealer, log })).toMatchObject({ size: head });
      await sealOn(copy, root);
      await expectSound(copy, root);
    });
  });
});

describe("the database went on before anybody noticed", () => {
  test.each([1 << 0, 1 << 3, 1 << 4, 1 << 5, 1 << 6, 127])(
    "over leftovers %i: they are set aside and kept",
    async (subset) => {
      const root = await left((file) => (subset >> file) % 2 === 1);
      await withFirst(async (copy) => {
        await submit(copy, root, 300, 5_000);
        const sealer = sealerOn(copy.writer, root);
        // Some are in the way at once, some only when their tile is full.
        const outcome = await seal({ ...sealer, log }).catch((error: unknown) => error);
        if (sealer.guard.state().size > 0) expect(outcome).toMatchObject({ code: "log-behind" });
        const found = await restore(copy, root, log);
        expect(found).toMatchObject({ unsigned: 0n, before: found.after });
        expect(found.aside).toBeGreaterThan(0);
        const kept = [...(await archived(root)).keys()].filter((name) => name.includes("/aside/"));
        expect(kept).toHaveLength(found.aside);
        await submit(copy, root, 200, 6_000);
        // The process that was refused goes on by itself.
        expect(await seal({ ...sealer, log })).toBeDefined();
        expect(sealer.guard.state().size).toBe(0);
        await sealOn(copy, root);
        await expectSound(copy, root);
      });
    },
  );

  test("over a claimed tree, which may be signed: the database is the one that forked", async () => {
    const root = await left(() => true, true);
    await withFirst(async (copy) => {
      await submit(copy, root, 20, 5_000);
      const found = restore(copy, root, log);
      await expect(found).rejects.toMatchObject({ code: "log-forked", index: first });
    });
    const empty = await freshDatabase();
    expect(await restore(empty, root, log)).toMatchObject({ after: head });
    await sealOn(empty, root);
    await expectSound(empty, root);
    await empty.drop();
  });
});

test("with its tail in the database, a dead sealer's files are no reason to do anything", async () => {
  const root = await left(() => true);
  expect(await restore(house.database, root, log)).toMatchObject({
    before: head,
    after: head,
    unsigned: 0n,
    aside: 0,
  });
});

test("a checkpoint whose sealer died before it wrote the row is recorded, and the next seal goes on from it", async () => {
  const root = await archiveFolder();
  await cp(house.archive, root, { recursive: true });
  const archive = folderArchive(root);
  const create: Archive["create"] = async (path, bytes) => {
    const created = await archive.create(path, bytes);
    if (path.includes("/checkpoint/")) throw new Error("killed");
    return created;
  };
  const dead = sealerOn(house.database.writer, { ...archive, create });
  await expect(seal({ ...dead, log })).rejects.toThrow("killed");
  const found = await restore(house.database, root, log);
  expect(found).toMatchObject({ archived: head, before: head, after: head, checkpoints: 1 });
  await submit(house.database, root, 5, 5_000);
  await sealOn(house.database, root);
  await expectSound(house.database, root);
});

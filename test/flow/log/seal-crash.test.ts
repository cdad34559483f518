/** A sealer that dies, or whose disk fails, at any moment: what the next one makes of it. */
import type { MakeDirectoryOptions } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { seal } from "../../../src/flow/log/seal.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { Chain, checkpointed, sealerOf } from "../chain.ts";
import { archived, archiveFolder, expectArchive, naiveClaims, naiveFiles } from "../folder.ts";

/** Counts what the code under test does to the disk; makes the n-th effect its last, or fail. */
const disk = vi.hoisted(() => ({
  effects: 0,
  diesAfter: 0,
  failsAt: 0,
  code: "",
  dead: false,
  tripped: false,

  /** What was done, in the order of completion: `sync PATH`, `link PATH`. */
  done: [] as string[],

  async effect<T>(what: string, work: () => Promise<T>): Promise<T> {
    if (disk.dead) throw new Error("dead");
    disk.effects += 1;
    const number = disk.effects;
    if (number === disk.failsAt) {
      disk.tripped = true;
      throw Object.assign(new Error("injected"), { code: disk.code });
    }
    const working = work();
    const succeeded = await working.then(
      () => true,
      () => false,
    );
    if (number === disk.diesAfter) {
      disk.tripped = true;
      disk.dead = true;
    }
    if (disk.dead) throw new Error("dead");
    if (succeeded) disk.done.push(what);
    return working;
  },

  reset(plan: { diesAfter?: number; failsAt?: number; code?: string } = {}): void {
    const counts = { effects: 0, diesAfter: 0, failsAt: 0 };
    Object.assign(disk, { ...counts, code: "", dead: false, tripped: false, done: [] }, plan);
  },
}));

vi.mock("node:fs/promises", async (importActual) => {
  const actual = await importActual<typeof import("node:fs/promises")>();
  const open: typeof actual.open = async (path, ...how) => {
    const file = await actual.open(path, ...how);
    const { writeFile, sync } = file;
    file.writeFile = (data) => disk.effect(`write ${path}`, () => writeFile.call(file, data));
    file.sync = () => disk.effect(`sync ${path}`, () => sync.call(file));
    return file;
  };
  return {
    ...actual,
    open,
    link: (from: string, to: string) => disk.effect(`link ${to}`, () => actual.link(from, to)),
    unlink: (path: string) => disk.effect(`unlink ${path}`, () => actual.unlink(path)),
    mkdir: (path: string, how?: MakeDirectoryOptions) =>
      disk.effect(`mkdir ${path}`, () => actual.mkdir(path, how)),
  };
});

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

const BEFORE = 3;
const SIZE = 300;

/** A log of 300 entries, sealed to the third; each has a number of its own. */
async function halfSealed(number: number): Promise<{ chain: Chain; root: string }> {
  disk.reset();
  const chain = new Chain(number);
  const root = await archiveFolder();
  await chain.growTo(db.writer, BEFORE);
  await seal({ ...sealerOf(db.writer, root), log: chain.log });
  await chain.growTo(db.writer, SIZE);
  return { chain, root };
}

test("bytes are on disk before their name, and every name before the checkpoint that implies it", async () => {
  const { chain, root } = await halfSealed(1);
  disk.reset();
  await seal({ ...sealerOf(db.writer, root), log: chain.log });
  const { done } = disk;
  const place = (what: string): number => done.indexOf(what);
  const signed = place(`link ${join(root, chain.log, "checkpoint", String(SIZE))}`);
  const names = done.slice(0, signed).filter((what) => what.startsWith("link "));
  expect(names).toHaveLength(6);
  expect(names.at(-1)).toBe(`link ${join(root, chain.log, "claim", String(BEFORE))}`);
  for (const name of names) {
    const written = done.slice(0, place(name)).filter((what) => what.startsWith("sync "));
    expect(written.length).toBeGreaterThan(0);
    const synced = done.slice(place(name), signed);
    for (
      let folder = dirname(name.slice(5));
      folder.length >= root.length;
      folder = dirname(folder)
    ) {
      expect(synced, folder).toContain(`sync ${folder}`);
      // The claim comes last; the folders above its own were synced for the tiles.
      if (folder.endsWith("claim")) break;
    }
  }
  expect(done.slice(signed)).toContain(`sync ${join(root, chain.log, "checkpoint")}`);
});

test("killed after any effect, what the next seal leaves is what one seal would have left", async () => {
  let killed = 0;
  for (let n = 1; killed === n - 1; n++) {
    const { chain, root } = await halfSealed(100 + n);
    disk.reset({ diesAfter: n });
    await seal({ ...sealerOf(db.writer, root), log: chain.log }).catch(() => undefined);
    if (disk.tripped) {
      killed += 1;
      expect(await checkpointed(db.reader, chain.log)).toEqual([BigInt(BEFORE)]);
    }
    disk.reset();
    await seal({ ...sealerOf(db.writer, root), log: chain.log });
    await expectArchive(root, chain, [BEFORE, SIZE]);
    expect(await checkpointed(db.reader, chain.log)).toEqual([BigInt(BEFORE), BigInt(SIZE)]);
  }
  expect(killed).toBeGreaterThan(40);
});

test("killed after any effect, a seal that finds more entries goes on as well", async () => {
  const step = 3;
  let killed = 0;
  for (let n = 1; killed === (n - 1) / step; n += step) {
    const { chain, root } = await halfSealed(1_000 + n);
    disk.reset({ diesAfter: n });
    await seal({ ...sealerOf(db.writer, root), log: chain.log }).catch(() => undefined);
    if (disk.tripped) killed += 1;
    disk.reset();
    await chain.growTo(db.writer, SIZE + 250);
    const sealer = sealerOf(db.writer, root);
    // What the dead one had claimed goes first, on its own.
    const claimed = (await archived(root)).has(`${chain.log}/claim/${BEFORE}`);
    const sizes = claimed ? [SIZE, SIZE + 250] : [SIZE + 250];
    while ((await seal({ ...sealer, log: chain.log })) !== undefined);
    const all = [BEFORE, ...sizes].map(BigInt);
    expect(await checkpointed(db.reader, chain.log)).toEqual(all);
    const found = await archived(root);
    const wanted = naiveFiles(chain, [BEFORE, SIZE + 250]);
    const allowed = new Map([
      ...naiveFiles(chain, [BEFORE, SIZE, SIZE + 250]),
      ...naiveClaims(chain, [BEFORE, ...sizes]),
    ]);
    for (const [path, bytes] of wanted) expect(found.get(path), path).toBe(bytes);
    for (const [path, bytes] of found) {
      if (!path.includes("/checkpoint/")) expect(allowed.get(path), path).toBe(bytes);
    }
    const latest = await folderArchive(root).latestCheckpoint(chain.log);
    expect(latest).toMatchObject({ size: BigInt(SIZE + 250) });
  }
  expect(killed).toBeGreaterThan(12);
});

test("when any one effect fails, the seal says so or is whole, and so is the next one", async () => {
  let failed = 0;
  for (let n = 1; failed === n - 1; n++) {
    const { chain, root } = await halfSealed(2_000 + n);
    const sealer = sealerOf(db.writer, root);
    const code = n % 2 === 0 ? "ENOSPC" : "EIO";
    disk.reset({ failsAt: n, code });
    const outcome = await seal({ ...sealer, log: chain.log }).catch((error: unknown) => error);
    if (disk.tripped) failed += 1;
    const sealed = await checkpointed(db.reader, chain.log);
    if (sealed.includes(BigInt(SIZE))) {
      expect(outcome).toMatchObject({ size: BigInt(SIZE) });
    } else {
      expect(outcome).toMatchObject({ code: "archive-unavailable", cause: { cause: { code } } });
      expect(sealer.guard.state().get(chain.log)).toBe("archive-unavailable");
      await seal({ ...sealer, log: chain.log });
    }
    expect(sealer.guard.state().size).toBe(0);
    await expectArchive(root, chain, [BEFORE, SIZE]);
  }
  expect(failed).toBeGreaterThan(40);
});

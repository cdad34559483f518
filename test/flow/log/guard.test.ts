import { cp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seal } from "../../../src/flow/log/seal.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { testKey } from "../../signing.ts";
import { Chain, checkpointed, sealerOf } from "../chain.ts";
import { archived, archiveFolder } from "../folder.ts";
import {
  ask,
  behind,
  expectRefused,
  restoredAtTen,
  sealedAtTwenty,
  unavailable,
} from "../guarded.ts";
import { signersUnder } from "../signer.ts";

/** The database, and one that holds what a restored or left-behind copy of it would. */
let db: FreshDatabase;
let copy: FreshDatabase;
beforeAll(async () => {
  [db, copy] = await Promise.all([freshDatabase(), freshDatabase()]);
});
afterAll(() => Promise.all([db.drop(), copy.drop()]));

const INVARIANT_8 =
  "invariant 8: when the database is behind, or differs from, what the archive holds, the service neither signs nor appends, and says so";

describe(`${INVARIANT_8}: the database`, () => {
  test("restored from an older copy", async () => {
    const { root } = await sealedAtTwenty(db, 1);
    await expectRefused(copy, root, await restoredAtTen(copy, 1));
  });

  test.each([20, 300])(
    "restored from an older copy, and gone another way up to %d entries",
    async (size) => {
      const { root } = await sealedAtTwenty(db, size);
      await expectRefused(copy, root, await restoredAtTen(copy, size, size));
    },
  );

  test("L11: the last entries are gone", async () => {
    const { chain, root } = await sealedAtTwenty(db, 2);
    const shorter = new Chain(2);
    await shorter.growTo(copy.writer, 15);
    await expectRefused(copy, root, shorter);
    expect(chain.entries).toHaveLength(20);
  });

  test("L12: all entries are gone, and the log began anew", async () => {
    const { root } = await sealedAtTwenty(db, 3);
    const anew = new Chain(3, 0);
    await anew.growTo(copy.writer, 1);
    await expectRefused(copy, root, anew);
  });
});

/** What may become of an archive's folder. */
const LOSSES: [string, (root: string, log: string) => Promise<void>][] = [
  ["emptied", (root, log) => rm(join(root, log), { recursive: true })],
  ["without any checkpoint", (root, log) => rm(join(root, log, "checkpoint"), { recursive: true })],
  ["cut back to an earlier checkpoint", (root, log) => rm(join(root, log, "checkpoint/20"))],
  [
    "given the earlier checkpoint under the later name",
    (root, log) => cp(join(root, log, "checkpoint/10"), join(root, log, "checkpoint/20")),
  ],
  [
    "given a checkpoint that is no note",
    (root, log) => writeFile(join(root, log, "checkpoint/20"), "a text\n\nand no signature\n"),
  ],
];
describe(`${INVARIANT_8}: the archive`, () => {
  test.each(LOSSES)("the archive was %s", async (what, lose) => {
    const { chain, root } = await sealedAtTwenty(
      db,
      10 + LOSSES.findIndex(([name]) => name === what),
    );
    await lose(root, chain.log);
    await expectRefused(db, root, chain);
  });

  test("the archive is another installation's, which has a log of the same id", async () => {
    const { chain, root } = await sealedAtTwenty(db, 4);
    const foreign = new Chain(4);
    const foreignRoot = await archiveFolder();
    await foreign.growTo(copy.writer, 20);
    const theirs = sealerOf(
      copy.writer,
      foreignRoot,
      signersUnder("chain.test", testKey(8)).signerFor,
    );
    await seal({ ...theirs, log: chain.log });
    await expectRefused(db, foreignRoot, chain);
    expect(await archived(root)).not.toEqual(await archived(foreignRoot));
  });

  test("the archive of another log was put in its place", async () => {
    const { chain, root } = await sealedAtTwenty(db, 5);
    const other = await sealedAtTwenty(db, 6);
    await rm(join(root, chain.log), { recursive: true });
    await cp(join(other.root, other.chain.log), join(root, chain.log), { recursive: true });
    await expectRefused(db, root, chain);
  });
});

describe(`${INVARIANT_8}: a running process`, () => {
  test("the archive is emptied under a running process: its next seal notices, and no append after", async () => {
    const { chain, root } = await sealedAtTwenty(db, 7);
    const sealer = sealerOf(db.writer, root);
    await ask(sealer, chain.log);
    const away = await archiveFolder();
    await rename(join(root, chain.log), join(away, chain.log));
    await chain.growTo(db.writer, 21);
    await expect(seal({ ...sealer, log: chain.log })).rejects.toMatchObject(behind);
    await expect(ask(sealer, chain.log)).rejects.toMatchObject(behind);
    expect(await readdir(root)).not.toContain(chain.log);
    await rename(join(away, chain.log), join(root, chain.log));
    expect(await seal({ ...sealer, log: chain.log })).toMatchObject({ size: 21n });
    await ask(sealer, chain.log);
    expect(sealer.guard.state().size).toBe(0);
  });

  test.each([
    ["the checkpoint that it sealed last is another one", 20],
    ["the one that it would create is there, for another tree", 21],
  ])("%s", async (_, size) => {
    const { chain, root } = await sealedAtTwenty(db, 100 + size);
    const sealer = sealerOf(db.writer, root);
    await ask(sealer, chain.log);
    const folder = join(root, chain.log, "checkpoint");
    await cp(join(folder, "10"), join(folder, String(size)));
    await chain.growTo(db.writer, 21);
    await expect(seal({ ...sealer, log: chain.log })).rejects.toMatchObject(behind);
    await expect(ask(sealer, chain.log)).rejects.toMatchObject(behind);
    expect(await checkpointed(db.reader, chain.log)).toEqual([10n, 20n]);
  });

  test("an archive that cannot be reached stops both, until it can be reached", async () => {
    const { chain, root } = await sealedAtTwenty(db, 8);
    await chain.growTo(db.writer, 25);
    await rename(root, `${root}.away`);
    const sealer = sealerOf(db.writer, root);
    await expect(ask(sealer, chain.log)).rejects.toMatchObject(unavailable);
    sealer.now += 1_000;
    await expect(seal({ ...sealer, log: chain.log })).rejects.toMatchObject(unavailable);
    expect(sealer.guard.state().get(chain.log)).toBe("archive-unavailable");
    await rename(`${root}.away`, root);
    sealer.now += 1_000;
    expect(await seal({ ...sealer, log: chain.log })).toMatchObject({ size: 25n });
    await ask(sealer, chain.log);
  });
});

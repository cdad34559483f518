/** Several sealers of one log: at once, without their lock, over databases that differ. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { seal } from "../../../src/flow/log/seal.ts";
import type { Archive } from "../../../src/store/archive.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { Chain, checkpointed, sealerOf } from "../chain.ts";
import { archived, archiveFolder, expectArchive } from "../folder.ts";

let db: FreshDatabase;
let copy: FreshDatabase;
beforeAll(async () => {
  [db, copy] = await Promise.all([freshDatabase(), freshDatabase()]);
});
afterAll(() => Promise.all([db.drop(), copy.drop()]));

test("of sealers at once one seals, and the others do not wait for it", async () => {
  const chain = new Chain(1);
  await chain.growTo(db.writer, 700);
  const root = await archiveFolder();
  const sealers = Array.from({ length: 4 }, () => sealerOf(db.writer, root));
  const outcomes = await Promise.all(sealers.map((sealer) => seal({ ...sealer, log: chain.log })));
  expect(outcomes.filter((sealed) => sealed !== undefined)).toHaveLength(1);
  await expectArchive(root, chain, [700]);
});

test("L29: two databases that differ, sealed at once into one archive, never get two signatures", async () => {
  for (const number of [10, 11, 12, 13, 14]) {
    const root = await archiveFolder();
    const ours = new Chain(number);
    const theirs = new Chain(number, 2);
    await ours.growTo(db.writer, 300);
    await theirs.growTo(copy.writer, 300);
    const outcomes = await Promise.allSettled([
      seal({ ...sealerOf(db.writer, root), log: ours.log }),
      seal({ ...sealerOf(copy.writer, root), log: theirs.log }),
    ]);
    const signed = outcomes.filter(({ status }) => status === "fulfilled");
    expect(signed.length).toBeLessThanOrEqual(1);
    for (const outcome of outcomes) {
      if (outcome.status === "rejected")
        expect(outcome.reason).toMatchObject({ code: "log-behind" });
    }
    const rows = [
      ...(await checkpointed(db.reader, ours.log)),
      ...(await checkpointed(copy.reader, theirs.log)),
    ];
    expect(rows).toHaveLength(signed.length);
  }
});

test("a sealer that lost its lock while it wrote tiles signs nothing any more", async () => {
  const chain = new Chain(20);
  const root = await archiveFolder();
  await chain.growTo(db.writer, 300);
  const archive = folderArchive(root);
  const stalled: Archive = {
    ...archive,
    put: async (files) => {
      await archive.put(files);
      await db.superuser`
        select pg_terminate_backend(pid, 10000)
        from pg_locks
        where relation = 'seals'::regclass and pid <> pg_backend_pid()`;
      await chain.growTo(db.owner, 310);
      expect(await seal({ ...sealerOf(db.owner, root), log: chain.log })).toMatchObject({
        size: 310n,
      });
    },
  };
  const stale = sealerOf(db.writer, stalled);
  await expect(seal({ ...stale, log: chain.log })).rejects.toThrow();
  const files = Array.from((await archived(root)).keys());
  expect(files.filter((path) => path.includes("/checkpoint/"))).toEqual([
    `${chain.log}/checkpoint/310`,
  ]);
  expect(await checkpointed(db.reader, chain.log)).toEqual([310n]);
});

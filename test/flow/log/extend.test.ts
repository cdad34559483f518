import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seal } from "../../../src/flow/log/seal.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import type { Transaction } from "../../../src/store/connect.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { Chain, checkpointed, sealerOf } from "../chain.ts";
import { archiveFolder } from "../folder.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

type Change = (tx: Transaction, log: string) => Promise<unknown>;

/** What a superuser may do with the triggers off, and nobody else. */
async function tamper(log: string, change: Change): Promise<void> {
  await db.superuser.begin(async (tx) => {
    await tx`alter table entries disable trigger entries_append_only`;
    await change(tx, log);
    await tx`alter table entries enable always trigger entries_append_only`;
  });
}

const CHANGES: [what: string, change: Change][] = [
  [
    "a byte of an entry's body",
    (tx, log) =>
      tx`update entries set bytes = set_byte(bytes, 48, get_byte(bytes, 48) # 1)
         where log = ${log} and index = 3`,
  ],
  [
    "a byte of what an entry says of itself, and the leaf with it",
    (tx, log) =>
      tx`update entries
         set
           bytes = set_byte(bytes, 60, get_byte(bytes, 60) # 1),
           leaf = sha256('\\x00'::bytea || set_byte(bytes, 60, get_byte(bytes, 60) # 1))
         where log = ${log} and index = 3`,
  ],
  [
    "the leaf beside it",
    (tx, log) => tx`update entries set leaf = sha256('x') where log = ${log} and index = 3`,
  ],
  [
    "its link",
    (tx, log) => tx`update entries set prev = sha256('x') where log = ${log} and index = 3`,
  ],
  [
    "its instant",
    (tx, log) => tx`update entries set at = at + interval '1 ms' where log = ${log} and index = 3`,
  ],
  ["its kind", (tx, log) => tx`update entries set kind = 'hold' where log = ${log} and index = 3`],
  ["an entry taken out", (tx, log) => tx`delete from entries where log = ${log} and index = 3`],
  ["the last one taken out", (tx, log) => tx`delete from entries where log = ${log} and index = 5`],
  [
    "two exchanged",
    async (tx, log) => {
      await tx`update entries set index = 99 where log = ${log} and index = 3`;
      await tx`update entries set index = 3 where log = ${log} and index = 4`;
      await tx`update entries set index = 4 where log = ${log} and index = 99`;
    },
  ],
  ["the head's leaf", (tx, log) => tx`update heads set leaf = sha256('x') where log = ${log}`],
];

describe("what was altered between append and seal gets no signature, and no more appends", () => {
  test.each(CHANGES)("%s", async (what, change) => {
    const chain = new Chain(CHANGES.findIndex(([name]) => name === what));
    const root = await archiveFolder();
    const sealer = sealerOf(db.writer, root);
    await chain.growTo(db.writer, 2);
    await seal({ ...sealer, log: chain.log });
    await chain.growTo(db.writer, 6);
    await tamper(chain.log, change);
    const sealing = seal({ ...sealer, log: chain.log });
    await expect(sealing).rejects.toMatchObject({ code: "log-behind" });
    expect(await checkpointed(db.reader, chain.log)).toEqual([2n]);
    expect(await folderArchive(root).latestCheckpoint(chain.log)).toMatchObject({ size: 2n });
    expect(sealer.guard.state().get(chain.log)).toBe("log-behind");
  });
});

describe("what was altered after its seal stops the next one, though every link was made to fit", () => {
  test.each([
    { size: 5, fork: 4 },
    { size: 300, fork: 257 },
    { size: 256, fork: 255 },
  ])("entry $fork of $size", async ({ size, fork }) => {
    const chain = new Chain(0x100 + size);
    const forged = new Chain(0x100 + size, fork);
    const sealer = sealerOf(db.writer, await archiveFolder());
    await chain.growTo(db.writer, size);
    await seal({ ...sealer, log: chain.log });
    await tamper(chain.log, async (tx, log) => {
      await tx`delete from entries where log = ${log}`;
    });
    await forged.growTo(db.superuser, size + 1);
    await expect(seal({ ...sealer, log: chain.log })).rejects.toMatchObject({
      code: "log-behind",
      cause: { message: `entry ${fork} is not the one that was sealed` },
    });
  });
});

test("a clock that runs backwards within a log is no order", async () => {
  const chain = new Chain(0x400);
  const sealer = sealerOf(db.writer, await archiveFolder());
  await chain.growTo(db.writer, 2);
  await chain.growTo(db.writer, 3, -1);
  await expect(seal({ ...sealer, log: chain.log })).rejects.toMatchObject({
    code: "log-behind",
    cause: { message: "entry 2 is not as it was appended" },
  });
});

import { afterAll, beforeAll, expect, test } from "vitest";
import { openNote, type Vkey } from "../../../src/core/note.ts";
import { textOf } from "../../../src/flow/log/cosigned.ts";
import { openPublished } from "../../../src/flow/log/published.ts";
import { naiveRoot } from "../../core/merkle.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { verifyByOpenssl } from "../../signing.ts";
import { vkeyOf } from "../chain.ts";
import { policyOf, TestWitness } from "../witness.ts";
import { addCosignature, sealedLog } from "../witnessed.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

const ada = new TestWitness("ada", 61);
const bob = new TestWitness("bob", 62);
const cyd = new TestWitness("cyd", 63);

/** Names of those whose signature on the note holds. */
function signersOf(note: string | undefined, vkeys: readonly Vkey[]): string[] {
  const opened = openNote(note ?? "", vkeys, verifyByOpenssl);
  return "text" in opened ? opened.signatures.map(({ vkey }) => vkey.name) : [opened.problem];
}

test("without a policy the newest checkpoint is published, with all that was signed beside it", async () => {
  const { chain, log } = await sealedLog(db.writer, 1, [3, 7]);
  const published = openPublished({ sql: db.reader });
  expect(await published.latest(log)).toMatchObject({
    size: 7n,
    root: naiveRoot(chain.leaves),
    cosigned: 0,
    anchored: false,
  });
  await addCosignature(db.writer, log, 7n, ada);
  const latest = await published.latest(log);
  expect(latest).toMatchObject({ size: 7n, cosigned: 1, anchored: false });
  expect(signersOf(latest?.note, [vkeyOf(log), ada.vkey])).toEqual([vkeyOf(log).name, "ada.test"]);
  expect((await published.at(log, 3n))?.root).toEqual(naiveRoot(chain.leaves.slice(0, 3)));
  expect(await published.at(log, 5n)).toBeUndefined();
  expect(await published.latest("f".repeat(32))).toBeUndefined();
});

test("with a quorum the newest that reaches it is published, and nothing newer of any size", async () => {
  const { log } = await sealedLog(db.writer, 2, [2, 4, 6]);
  const policy = policyOf([ada, bob, cyd], 2);
  const published = openPublished({ sql: db.reader, policy });
  await addCosignature(db.writer, log, 6n, ada);
  expect(await published.latest(log)).toBeUndefined();
  expect(await published.at(log, 2n)).toBeUndefined();
  for (const witness of [ada, cyd]) await addCosignature(db.writer, log, 4n, witness);
  expect(await published.latest(log)).toMatchObject({ size: 4n, cosigned: 2, anchored: true });
  expect(await published.at(log, 6n)).toBeUndefined();
  expect(await published.at(log, 2n)).toMatchObject({ size: 2n, cosigned: 0, anchored: false });
  await addCosignature(db.writer, log, 4n, bob);
  expect(await published.latest(log)).toMatchObject({ size: 4n, cosigned: 3 });
  await addCosignature(db.writer, log, 6n, cyd);
  expect(await published.latest(log)).toMatchObject({ size: 6n, cosigned: 2 });
});

test("a policy that asks for nobody publishes the newest, and says whether anybody signed it", async () => {
  const { log, growTo } = await sealedLog(db.writer, 3, [2]);
  const published = openPublished({ sql: db.reader, policy: policyOf([ada], 0) });
  await addCosignature(db.writer, log, 2n, ada);
  expect(await published.latest(log)).toMatchObject({ size: 2n, anchored: true });
  await growTo(3);
  expect(await published.latest(log)).toMatchObject({ size: 3n, anchored: false });
});

test("a row that the witness did not sign, or signed for another text, counts for nothing", async () => {
  const { log } = await sealedLog(db.writer, 4, [2, 4]);
  const other = await sealedLog(db.writer, 5, [4]);
  const published = openPublished({ sql: db.reader, policy: policyOf([ada, bob], 1) });
  const elsewhere = await openPublished({ sql: db.reader }).latest(other.log);
  await addCosignature(db.writer, log, 4n, ada, textOf(elsewhere?.note ?? ""));
  expect(await published.latest(log)).toBeUndefined();
  await addCosignature(db.writer, log, 2n, bob);
  expect(await published.latest(log)).toMatchObject({ size: 2n });
});

test("a quorum that is a long way back is found, and one that comes late is too", async () => {
  const sizes = Array.from({ length: 40 }, (_, i) => i + 1);
  const { log } = await sealedLog(db.writer, 6, sizes);
  for (const size of sizes) await addCosignature(db.writer, log, BigInt(size), ada);
  await addCosignature(db.writer, log, 2n, bob);
  const published = openPublished({ sql: db.reader, policy: policyOf([ada, bob], 2) });
  expect(await published.latest(log)).toMatchObject({ size: 2n });
  await addCosignature(db.writer, log, 39n, bob);
  expect(await published.latest(log)).toMatchObject({ size: 39n });
});

test("readers never see the published size go down, though the database does", async () => {
  const { log } = await sealedLog(db.writer, 7, [2, 4]);
  const published = openPublished({ sql: db.reader });
  const before = await published.latest(log);
  await db.superuser.begin(async (tx) => {
    await tx`alter table checkpoints disable trigger checkpoints_kept`;
    await tx`delete from checkpoints where log = ${log} and size = 4`;
    await tx`alter table checkpoints enable always trigger checkpoints_kept`;
  });
  expect(before?.size).toBe(4n);
  expect(await published.latest(log)).toBe(before);
  expect(await published.at(log, 4n)).toBe(before);
});

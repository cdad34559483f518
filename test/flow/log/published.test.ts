import { afterAll, beforeAll, expect, test } from "vitest";
import { openNote, type Vkey } from "../../../src/core/note.ts";
import { encodeUtf8 } from "../../../src/core/text.ts";
import { textOf } from "../../../src/flow/log/cosigned.ts";
import { openPublished } from "../../../src/flow/log/published.ts";
import { cosignaturePath } from "../../../src/store/archive.ts";
import { insertCosignature } from "../../../src/store/cosignatures.ts";
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
  const { chain, log, submitting } = await sealedLog(db.writer, 1, [3, 7]);
  const published = openPublished({ ...submitting, sql: db.reader });
  expect(await published.latest(log)).toMatchObject({
    size: 7n,
    root: naiveRoot(chain.leaves),
    cosigned: 0,
    anchored: false,
  });
  const line = await addCosignature(db.writer, log, 7n, ada);
  await submitting.archive.create(cosignaturePath(log, 7n, ada.vkey.id), encodeUtf8(line));
  // A line that the archive does not hold, and nobody can verify.
  await addCosignature(db.writer, log, 7n, bob);
  const latest = await published.latest(log);
  expect(latest).toMatchObject({ size: 7n, cosigned: 1, anchored: false });
  expect(signersOf(latest?.note, [vkeyOf(log), ada.vkey])).toEqual([vkeyOf(log).name, "ada.test"]);
  expect((await published.at(log, 3n))?.root).toEqual(naiveRoot(chain.leaves.slice(0, 3)));
  expect(await published.at(log, 5n)).toBeUndefined();
  expect(await published.latest("f".repeat(32))).toBeUndefined();
});

test("with a quorum the newest that reaches it is published, and nothing newer of any size", async () => {
  const { log, submitting } = await sealedLog(db.writer, 2, [2, 4, 6]);
  const policy = policyOf([ada, bob, cyd], 2);
  const published = openPublished({ ...submitting, sql: db.reader, policy });
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
  const { log, growTo, submitting } = await sealedLog(db.writer, 3, [2]);
  const published = openPublished({ ...submitting, sql: db.reader, policy: policyOf([ada], 0) });
  await addCosignature(db.writer, log, 2n, ada);
  expect(await published.latest(log)).toMatchObject({ size: 2n, anchored: true });
  await growTo(3);
  expect(await published.latest(log)).toMatchObject({ size: 3n, anchored: false });
});

test("a row that the witness did not sign, or signed for another text, counts for nothing", async () => {
  const { log, submitting } = await sealedLog(db.writer, 4, [2, 4]);
  const other = await sealedLog(db.writer, 5, [4]);
  const published = openPublished({
    ...submitting,
    sql: db.reader,
    policy: policyOf([ada, bob], 1),
  });
  const elsewhere = await openPublished(other.submitting).latest(other.log);
  await addCosignature(db.writer, log, 4n, ada, textOf(elsewhere?.note ?? ""));
  expect(await published.latest(log)).toBeUndefined();
  await addCosignature(db.writer, log, 2n, bob);
  expect(await published.latest(log)).toMatchObject({ size: 2n });
});

test("a quorum that is a long way back is found, and one that comes late is too", async () => {
  const sizes = Array.from({ length: 40 }, (_, i) => i + 1);
  const { log, submitting } = await sealedLog(db.writer, 6, sizes);
  for (const size of sizes) await addCosignature(db.writer, log, BigInt(size), ada);
  await addCosignature(db.writer, log, 2n, bob);
  const published = openPublished({
    ...submitting,
    sql: db.reader,
    policy: policyOf([ada, bob], 2),
  });
  expect(await published.latest(log)).toMatchObject({ size: 2n });
  await addCosignature(db.writer, log, 39n, bob);
  expect(await published.latest(log)).toMatchObject({ size: 39n });
});

test("readers never see the published size go down, though the database does", async () => {
  const { log, submitting } = await sealedLog(db.writer, 7, [2, 4]);
  const published = openPublished({ ...submitting, sql: db.reader });
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

/** As whoever has the service's database password can. */
const forge = (log: string, size: number, note: string) => db.writer`
  insert into checkpoints (log, size, root, note, sealed_at)
  values (${log}, ${size}, ${new Uint8Array(32)}, ${note}, now())`;

test("a row that nobody signed, or that the archive does not hold, is never shown", async () => {
  const { log, submitting } = await sealedLog(db.writer, 8, [2, 4]);
  const other = await sealedLog(db.writer, 9, [2, 3, 6]);
  const published = openPublished({ ...submitting, sql: db.reader });
  const foreign = await openPublished(other.submitting).at(other.log, 3n);
  await forge(log, 3, foreign?.note ?? "");
  for (let size = 100; size < 120; size += 1) await forge(log, size, "forged");
  const latest = await published.latest(log);
  expect(latest).toMatchObject({ size: 4n, cosigned: 0 });
  expect(signersOf(latest?.note, [vkeyOf(log)])).toEqual([vkeyOf(log).name]);
  expect(await published.at(log, 3n)).toBeUndefined();
  expect(await published.at(log, 100n)).toBeUndefined();
  // Nor a genuine one of the archive's own, when it is of another log or size.
  const path = `${log}/checkpoint/3`;
  await submitting.archive.create(path, encodeUtf8(foreign?.note ?? ""));
  expect(await published.at(log, 3n)).toBeUndefined();
});

test("a row of a witness that says anything else than its signature spoils no note", async () => {
  const { log, submitting } = await sealedLog(db.writer, 10, [2]);
  const policy = policyOf([ada], 0);
  for (const [name, key_id, line] of [
    ["ada.test", ada.vkey.id, "\n\nanother text\n"],
    [vkeyOf(log).name, vkeyOf(log).id, "— x AAAA\n"],
    ["x", "../../..", "x"],
  ] as const) {
    await insertCosignature(db.writer, { log, size: 2n, name, key_id, line, time: 1n });
  }
  for (const each of [policy, undefined]) {
    const latest = await openPublished({ ...submitting, policy: each }).latest(log);
    expect(latest).toMatchObject({ size: 2n, cosigned: 0 });
    expect(signersOf(latest?.note, [vkeyOf(log)])).toEqual([vkeyOf(log).name]);
  }
});

import { beforeEach, expect, test } from "vitest";
import { type Anchoring, anchorOf, openAnchors } from "../../../src/flow/log/anchor.ts";
import { textOf } from "../../../src/flow/log/cosigned.ts";
import { type Archive, ArchiveError } from "../../../src/store/archive.ts";
import { insertCosignature, readCosigned } from "../../../src/store/cosignatures.ts";
import { recordConflict, recordWitnessSize } from "../../../src/store/submissions.ts";
import { naiveRoot } from "../../core/merkle.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { policyOf, TestWitness } from "../witness.ts";
import { addCosignature, type SealedLog, sealedLog } from "../witnessed.ts";

let db: FreshDatabase;
beforeEach(async () => {
  db = await freshDatabase();
  return () => db.drop();
});

const ada = new TestWitness("ada", 61);
const bob = new TestWitness("bob", 62);
const DAY_MS = 86_400_000;

/** What an archive with retention says of these checkpoints. */
function locking({ submitting }: SealedLog, until: Record<string, number>): Archive {
  return {
    ...submitting.archive,
    lockMs: DAY_MS,
    lockedUntil: async (path) => {
      const at = until[path.split("/").at(-1) ?? ""];
      return at === undefined ? undefined : new Date(at);
    },
  };
}

const anchoringOf = (sealed: SealedLog, witnesses: readonly TestWitness[] = [ada, bob]) => ({
  ...sealed.submitting,
  policy: policyOf(witnesses, witnesses.length),
});

test("an anchor is the oldest checkpoint of at least that size that a witness of the policy cosigned", async () => {
  const sealed = await sealedLog(db.writer, 1, [2, 4, 6, 8]);
  const { chain, log } = sealed;
  const anchoring = anchoringOf(sealed);
  expect(await anchorOf(anchoring, log, 1n)).toBeUndefined();
  for (const size of [4n, 8n]) await addCosignature(db.writer, log, size, ada);
  await addCosignature(db.writer, log, 8n, bob);
  expect(await anchorOf(anchoring, log, 3n)).toEqual({
    kind: "witnessed",
    size: 4n,
    root: naiveRoot(chain.leaves.slice(0, 4)),
    by: [{ name: "ada.test", time: ada.time }],
  });
  expect(await anchorOf(anchoring, log, 4n)).toMatchObject({ size: 4n });
  const names = [{ name: "ada.test" }, { name: "bob.test" }];
  expect(await anchorOf(anchoring, log, 5n)).toMatchObject({ size: 8n, by: names });
  expect(await anchorOf(anchoring, log, 9n)).toBeUndefined();
});

test("nobody whom the policy does not name, and no row that does not verify, is an anchor", async () => {
  const sealed = await sealedLog(db.writer, 1, [2, 4]);
  const { log } = sealed;
  await addCosignature(db.writer, log, 2n, ada);
  const text = textOf((await readCosigned(db.reader, log, 2n))?.note ?? "");
  await addCosignature(db.writer, log, 4n, bob, text);
  expect(await anchorOf(anchoringOf(sealed, [bob]), log, 1n)).toBeUndefined();
  expect(await anchorOf({ ...sealed.submitting }, log, 1n)).toBeUndefined();
});

test("an anchor that lies many forged rows ahead is found", async () => {
  const sizes = Array.from({ length: 20 }, (_, i) => i + 1);
  const sealed = await sealedLog(db.writer, 1, sizes);
  const { log } = sealed;
  const other = "elsewhere/x\n1\nroot\n";
  for (const size of sizes.slice(0, -1)) {
    await addCosignature(db.writer, log, BigInt(size), ada, other);
  }
  await addCosignature(db.writer, log, 20n, ada);
  expect(await anchorOf(anchoringOf(sealed), log, 1n)).toMatchObject({ size: 20n });
});

test("another log's checkpoint with its genuine cosignature, in a row of this log, is no anchor", async () => {
  const [sealed, other] = [await sealedLog(db.writer, 1, [2]), await sealedLog(db.writer, 2, [9])];
  const line = await addCosignature(db.writer, other.log, 9n, ada);
  const foreign = await readCosigned(db.reader, other.log, 9n);
  await db.writer`
    insert into checkpoints (log, size, root, note, sealed_at)
    values (${sealed.log}, 9, ${foreign?.root ?? ""}, ${foreign?.note ?? ""}, now())`;
  const { name, id } = ada.vkey;
  const row = { log: sealed.log, size: 9n, name, key_id: id, line, time: ada.time };
  await insertCosignature(db.writer, row);
  expect(await anchorOf(anchoringOf(sealed), sealed.log, 1n)).toBeUndefined();
});

test("storage that cannot let go of a checkpoint yet is an anchor, and none when the day has come", async () => {
  const sealed = await sealedLog(db.writer, 1, [2, 4, 6]);
  const { log, submitting } = sealed;
  const later = submitting.now + DAY_MS;
  const archive = locking(sealed, { 2: submitting.now, 4: later, 6: later + 1 });
  const anchoring = { ...anchoringOf(sealed), archive };
  const { root } = (await readCosigned(db.reader, log, 4n)) ?? {};
  const lock = { kind: "locked", size: 4n, root, until: new Date(later) };
  expect(await anchorOf(anchoring, log, 3n)).toEqual(lock);
  // Out of its lock: then what was sealed last stands for it.
  expect(await anchorOf(anchoring, log, 2n)).toMatchObject({ kind: "locked", size: 6n });
  await addCosignature(db.writer, log, 6n, ada);
  expect(await anchorOf(anchoring, log, 3n)).toEqual(lock);
  await addCosignature(db.writer, log, 4n, ada);
  expect(await anchorOf(anchoring, log, 3n)).toMatchObject({ kind: "witnessed", size: 4n });
  expect(await anchorOf(anchoring, log, 7n)).toBeUndefined();
  const away = new ArchiveError("archive-unavailable", "away");
  const unreachable = { ...archive, lockedUntil: () => Promise.reject(away) };
  await expect(anchorOf({ ...anchoring, archive: unreachable }, log, 2n)).rejects.toBe(away);
});

/** What a process finds at its first look. */
const readAnchors = (anchoring: Anchoring) => openAnchors(anchoring)();

test("what is not cosigned for a while is said with its age, over all logs together", async () => {
  const first = await sealedLog(db.writer, 1, [2]);
  const second = await sealedLog(db.writer, 2, [2]);
  const anchoring = anchoringOf(first);
  first.submitting.now += 7_000;
  const look = () => readAnchors({ ...anchoring, clock: first.submitting.clock });
  expect(await look()).toMatchObject({ state: "none", logs: 2, lag_ms: 7_000 });
  await addCosignature(db.writer, first.log, 2n, ada);
  expect(await look()).toMatchObject({ state: "witnessed", logs: 1, lag_ms: 7_000 });
  await addCosignature(db.writer, second.log, 2n, bob);
  expect(await look()).toMatchObject({ state: "witnessed", logs: 0, lag_ms: 0 });
  await first.growTo(3);
  first.submitting.now += 500;
  await first.growTo(4);
  expect(await look()).toMatchObject({ state: "witnessed", logs: 1, lag_ms: 500 });
});

test("a witness that is ahead is said before all else, however long the log is, until it signs what we have", async () => {
  const sealed = await sealedLog(db.writer, 1, [2]);
  const anchoring = anchoringOf(sealed);
  const { log } = sealed;
  await addCosignature(db.writer, log, 2n, ada);
  await recordWitnessSize(db.writer, log, bob.vkey.id, 3n);
  expect(await readAnchors(anchoring)).toMatchObject({ state: "witness-ahead" });
  await sealed.growTo(9);
  await addCosignature(db.writer, log, 9n, ada);
  expect(await readAnchors(anchoring)).toMatchObject({ state: "witness-ahead" });
  await recordConflict(db.writer, log, bob.vkey.id);
  expect(await readAnchors(anchoring)).toMatchObject({ state: "witness-conflict" });
  // Whom the policy does not name any more has nothing to say.
  expect(await readAnchors(anchoringOf(sealed, [ada]))).toMatchObject({ state: "witnessed" });
});

test("a witness that was ahead is content with what a recovery brought back of its own", async () => {
  const sealed = await sealedLog(db.writer, 1, [2, 4]);
  await recordWitnessSize(db.writer, sealed.log, bob.vkey.id, 4n);
  await addCosignature(db.writer, sealed.log, 4n, bob);
  expect(await readAnchors(anchoringOf(sealed))).toMatchObject({ state: "witnessed" });
});

test("an archive that locks is said where no witness is, and only if what is in it says so itself", async () => {
  const sealed = await sealedLog(db.writer, 1, [2]);
  const { submitting } = sealed;
  const look = (archive: Archive) => readAnchors({ ...submitting, archive });
  expect(await look(submitting.archive)).toMatchObject({ state: "none", logs: 1 });
  const later = submitting.now + DAY_MS;
  expect(await look(locking(sealed, { 2: later }))).toMatchObject({ state: "locked", logs: 0 });
  expect(await look(locking(sealed, {}))).toMatchObject({ state: "none", logs: 1 });
});

test("locks are judged for each log, and one that is over is said with its age", async () => {
  const [idle, busy] = [await sealedLog(db.writer, 1, [2]), await sealedLog(db.writer, 2, [3])];
  const { submitting } = busy;
  const sealedAt = submitting.now;
  const until: Record<string, number> = { 2: sealedAt + DAY_MS, 3: sealedAt + DAY_MS };
  const look = openAnchors({ ...submitting, archive: locking(idle, until) });
  expect(await look()).toMatchObject({ state: "locked", logs: 0, lag_ms: 0 });
  submitting.now += DAY_MS + 5;
  await busy.growTo(5);
  until[5] = submitting.now + DAY_MS;
  expect(await look()).toMatchObject({ state: "none", logs: 1, lag_ms: DAY_MS + 5 });
});

test("of many logs the store is asked about a few at each look, and about all in the end", async () => {
  for (let number = 1; number <= 40; number += 1) await sealedLog(db.writer, number, [2]);
  const sealed = await sealedLog(db.writer, 41, [7]);
  const later = sealed.submitting.now + DAY_MS;
  const asked: string[] = [];
  const archive: Archive = {
    ...locking(sealed, { 2: later }),
    lockedUntil: async (path) => {
      asked.push(path);
      return path.endsWith("/7") ? undefined : new Date(later);
    },
  };
  const look = openAnchors({ ...sealed.submitting, archive });
  const states = [await look(), await look(), await look(), await look()].map(({ logs }) => logs);
  expect(states).toEqual([0, 0, 1, 1]);
  expect(asked.length).toBe(64);
  expect(new Set(asked).size).toBe(41);
});

/** A key that leaked and was retired for it, in the hands of somebody who may write to the archive. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { decodeBundle, encodeBundle } from "../../../src/core/bundle.ts";
import { formatCheckpoint } from "../../../src/core/checkpoint.ts";
import { decodeEntry, type Entry, encodeEntry } from "../../../src/core/entry.ts";
import { leafHash } from "../../../src/core/hash.ts";
import { formatVkey, signNote } from "../../../src/core/note.ts";
import { changeLogKey } from "../../../src/flow/key/log-key.ts";
import { openGuard } from "../../../src/flow/log/guard.ts";
import { recover } from "../../../src/flow/log/recover.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import { naiveRoot } from "../../core/merkle.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { testKey } from "../../signing.ts";
import { closeHouse, type Door, type House, newLog, openHouse } from "../door.ts";
import { ask } from "../guarded.ts";
import { recoveringOn, sealerOn } from "../restored.ts";
import { held } from "../signer.ts";

const LEAKED = 9;
const NEXT = 11;

let house: House;
let door: Door;
let log: string;
let copy: FreshDatabase;

beforeAll(async () => {
  [house, copy] = await Promise.all([openHouse(), freshDatabase()]);
  const checkpoint = [held(testKey(LEAKED)), held(testKey(NEXT))];
  const receipt = [held(testKey(10))];
  door = house.open({ held: { checkpoint, receipt, available: () => true } });
  log = await newLog(door, "leaked");
  await sealed();
  await change("added", NEXT);
  await sealed();
  await change("retired", LEAKED);
});
afterAll(() => Promise.all([closeHouse(house), copy.drop()]));

const vkeyOf = (seed: number) => formatVkey(`door.test/${log}`, testKey(seed).publicKey);

async function change(state: "added" | "retired", seed: number): Promise<void> {
  const input = { purpose: "checkpoint", state, vkey: vkeyOf(seed) } as const;
  await changeLogKey(door, { log, by: "p_ops" }, input);
}

async function sealed(): Promise<bigint> {
  const { guard } = door;
  const sealer = { ...sealerOn(house.database.writer, house.archive), guard, ...signing() };
  return (await seal({ ...sealer, log }))?.size ?? 0n;
}

const signing = () => ({ signerFor: door.keyring.signerFor });

/** All that one process has, by what the log's entries say of its keys. */
function recovering(db: FreshDatabase) {
  const on = recoveringOn(db.writer, house.archive, log);
  const clock = { now: () => Date.now() };
  return { ...on, ...signing(), clock, guard: openGuard({ ...on, ...signing(), clock }) };
}

/** One more entry under a checkpoint by the key that leaked. */
async function forge(size: number): Promise<void> {
  const path = (name: string) => join(house.archive, log, name);
  const bundle = new Uint8Array(await readFile(path(`tile/entries/000.p/${size}`)));
  const entries = decodeBundle(bundle) ?? [];
  const last = entries.at(-1) ?? new Uint8Array();
  const { at } = decodeEntry(last) as Entry;
  const salt = Buffer.alloc(16).toString("base64");
  const body = { approval: "", by: "p_thief", public: true, salt };
  const shared = { at, log, prev: leafHash(last), index: BigInt(size) };
  entries.push(encodeEntry({ ...shared, body, kind: "visibility" }));
  const leaves = entries.map((entry) => leafHash(entry));
  await writeFile(path(`tile/entries/000.p/${size + 1}`), encodeBundle(entries));
  await writeFile(path(`tile/0/000.p/${size + 1}`), Buffer.concat(leaves));
  const origin = `door.test/${log}`;
  const text = formatCheckpoint({ origin, size: BigInt(size + 1), root: naiveRoot(leaves) });
  await writeFile(
    path(`checkpoint/${size + 1}`),
    signNote(text, [{ name: origin, ...testKey(LEAKED) }]),
  );
}

test("a checkpoint by a retired key alone is believed by nobody, and named as such", async () => {
  const size = Number(await sealed());
  const { signerFor } = door.keyring;
  const opened = await house.database.writer.begin(async (tx) => {
    const signer = await signerFor(tx, log, BigInt(size));
    const archive = folderArchive(house.archive);
    const sizes = await archive.sizes(log);
    const notes = await Promise.all(sizes.map((n) => archive.get(`${log}/checkpoint/${n}`)));
    return notes.map((note) => signer.open(Buffer.from(note ?? []).toString())?.size);
  });
  expect(opened, "what the key signed before stands").toEqual([2n, 3n, 4n]);

  await forge(size);
  const asked = ask(recovering(house.database), log);
  const refused = await asked.catch((error: Error) => error);
  expect(refused).toMatchObject({ code: "log-behind" });
  expect(String((refused as Error).cause)).toMatch(/retired/);
  for (const database of [house.database, copy]) {
    const found = recover(recovering(database));
    await expect(found).rejects.toMatchObject({ code: "retired-signer" });
  }
  const rows = await copy.reader`select index from entries where log = ${log}`;
  expect(rows).toEqual([]);
});

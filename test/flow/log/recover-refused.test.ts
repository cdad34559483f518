/** What is never replayed: another history, and an archive that does not hold what was signed. */
import { cp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { decodeBundle, encodeBundle } from "../../../src/core/bundle.ts";
import { recover, writtenFrom } from "../../../src/flow/log/recover.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { testKey } from "../../signing.ts";
import { closeHouse, type Door, entriesOf, type House, openDoor, openHouse } from "../door.ts";
import { archived, archiveFolder } from "../folder.ts";
import { begun, expectProven, fill, recoveringOn, restore, sealerOn } from "../restored.ts";
import { signersUnder } from "../signer.ts";

let house: House;
let door: Door;
let copy: FreshDatabase;
/** A log of more than two blocks, sealed twice, and the size of its first checkpoint. */
let log: string;
let first: bigint;
let size: bigint;
/** A copy of the archive, to do harm to. */
let root: string;

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
  log = await begun(door, "refused", 1);
  const sealer = sealerOn(house.database.writer, house.archive);
  await fill(door, log, 1, 40);
  first = (await seal({ ...sealer, log }))?.size ?? 0n;
  await fill(door, log, 1, 600, 1_000);
  size = (await seal({ ...sealer, log }))?.size ?? 0n;
});
afterAll(() => closeHouse(house));

beforeEach(async () => {
  copy = await freshDatabase();
  root = await archiveFolder();
  await cp(house.archive, root, { recursive: true });
});
afterEach(() => copy.drop());

const path = (name: string): string => join(root, log, name);

/** The database as it was at the first checkpoint. */
async function restoredAtFirst(): Promise<void> {
  const before = await archiveFolder();
  await cp(root, before, { recursive: true });
  await rm(join(before, log, "checkpoint", String(size)));
  await rm(join(before, log, "claim", String(first)));
  await rm(join(before, log, "tile"), { recursive: true });
  await folderArchive(before).put(await filesOf(first));
  await restore(copy, before, log);
}

/** What the first seal put. */
async function filesOf(at: bigint): Promise<{ path: string; bytes: Uint8Array }[]> {
  const names = [`tile/entries/000.p/${at}`, `tile/0/000.p/${at}`];
  return await Promise.all(
    names.map(async (name) => ({
      path: `${log}/${name}`,
      bytes: new Uint8Array(await readFile(join(house.archive, log, name))),
    })),
  );
}

async function expectRefused(code: string, told: RegExp | string): Promise<void> {
  const before = await archived(root);
  const found = await recover(recoveringOn(copy.writer, root, log)).catch((error: Error) => error);
  expect(found).toMatchObject({ code });
  expect(String(found)).toMatch(told);
  expect(await archived(root)).toEqual(before);
}

describe("a database that went another way", () => {
  test("is refused at the first entry that differs, and what only it has can be written out", async () => {
    await restoredAtFirst();
    const elsewhere = await archiveFolder();
    await cp(root, elsewhere, { recursive: true });
    await rm(join(elsewhere, log, "checkpoint", String(size)));
    const other = openDoor(copy.writer, { archive: elsewhere, seed: "fork" });
    house.doors.push(other);
    const texts = await fill(other, log, 1, 20, 7_000);
    await expectRefused("log-forked", `entry ${first} of the database is not the archived one`);
    const error = await restore(copy, root, log).catch((error: unknown) => error);
    expect(error).toMatchObject({ index: first });
    const lines: string[] = [];
    for await (const bytes of writtenFrom({ sql: copy.reader, log }, first)) {
      lines.push(Buffer.from(bytes).toString());
    }
    const held = lines.map((line) => JSON.parse(line).body.jws).filter((jws) => jws !== undefined);
    expect(texts).toEqual(expect.arrayContaining(held));
    expect(held.length).toBeGreaterThanOrEqual(20);

    const fresh = await freshDatabase();
    await restore(fresh, root, log);
    const third = openDoor(fresh.writer, { archive: root, seed: "third" });
    house.doors.push(third);
    const { results } = await third.submit(...held);
    expect(results.filter(({ code }) => code === "accepted")).toHaveLength(20);
    const entries = await entriesOf(fresh.reader, log);
    expect(entries.length).toBeGreaterThan(Number(size) + 20);
    await third.close();
    await fresh.drop();
  });

  test("also where a superuser changed an entry and its hash", async () => {
    await restoredAtFirst();
    await copy.superuser`alter table entries disable trigger all`;
    await copy.superuser`
      update entries
      set bytes = convert_to(replace(convert_from(bytes, 'UTF8'), '"kind"', '"kinD"'), 'UTF8')
      where log = ${log} and index = 7`;
    await expectRefused("log-forked", "entry 7 ");
  });

  test("and where an entry is missing", async () => {
    await restoredAtFirst();
    await copy.superuser`alter table entries disable trigger all`;
    await copy.superuser`delete from entries where log = ${log} and index = 9`;
    await expectRefused("log-forked", "entry 9 ");
  });
});

/** Block 1 is full, block 2 the last. */
const HARM: [string, string, RegExp, () => Promise<void>][] = [
  [
    "changed in one byte of an entry",
    "archive-altered",
    /entry 300 in tile\/entries\/001 /,
    () => altered("tile/entries/001", 300n - 256n),
  ],
  [
    "changed in an entry of the last bundle",
    "archive-altered",
    /entry 515 /,
    async () => altered(await lastBundle(), 3n),
  ],
  [
    "cut in a bundle",
    "archive-altered",
    /entry \d+ in tile\/entries\/001 /,
    () => shortened("tile/entries/001", 100),
  ],
  [
    "without a bundle",
    "archive-altered",
    /entry 256 in tile\/entries\/001 is missing/,
    () => rm(path("tile/entries/001")),
  ],
  [
    "given two bundles in each other's place",
    "archive-altered",
    /entry 256 /,
    () => cp(path("tile/entries/000"), path("tile/entries/001")),
  ],
  [
    "changed in a tile",
    "archive-altered",
    /do not give the root/,
    () => flipped("tile/0/001", 4_000),
  ],
  [
    "cut in a tile",
    "archive-altered",
    /tile\/0\/001 is cut short/,
    () => shortened("tile/0/001", 1),
  ],
  ["without a tile", "archive-altered", /tile\/0\/001 is missing/, () => rm(path("tile/0/001"))],
  [
    "changed in its newest checkpoint",
    "unknown-signer",
    /is not signed/,
    () => flipped(`checkpoint/${size}`, 60),
  ],
  [
    "given the older checkpoint under the newer name",
    "unknown-signer",
    /is not signed/,
    () => cp(path(`checkpoint/${first}`), path(`checkpoint/${size}`)),
  ],
  [
    "without any checkpoint",
    "no-checkpoint",
    /neither/,
    () => rm(path("checkpoint"), { recursive: true }),
  ],
  ["without anything", "no-checkpoint", /neither/, () => rm(join(root, log), { recursive: true })],
];

async function lastBundle(): Promise<string> {
  const [name] = await readdir(path("tile/entries/002.p"));
  return `tile/entries/002.p/${name}`;
}

async function altered(name: string, entry: bigint): Promise<void> {
  const entries = decodeBundle(new Uint8Array(await readFile(path(name))));
  const bytes = entries?.[Number(entry)];
  if (entries === undefined || bytes === undefined) throw new Error("no such entry");
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
  await writeFile(path(name), encodeBundle(entries));
}

async function flipped(name: string, at: number): Promise<void> {
  const bytes = await readFile(path(name));
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  await writeFile(path(name), bytes);
}

async function shortened(name: string, by: number): Promise<void> {
  const bytes = await readFile(path(name));
  await writeFile(path(name), bytes.subarray(0, bytes.length - by));
}

describe("an archive", () => {
  test.each(HARM)(
    "that is %s: %s, and nothing of the harm is written",
    async (_, code, told, harm) => {
      await harm();
      await expectRefused(code, told);
      const rows = await copy.reader<{ index: bigint }[]>`select index from entries order by index`;
      // What came before the harm was proven, and stands.
      expect(rows.map(({ index }) => index)).toEqual(rows.map((_, i) => BigInt(i)));
      await rm(root, { recursive: true });
      await cp(house.archive, root, { recursive: true });
      expect(await restore(copy, root, log)).toMatchObject({ after: size });
      await expectProven(copy);
    },
  );

  test("that another installation's key signed is refused", async () => {
    const { signerFor } = signersUnder("door.test", testKey(77));
    const found = recover({ ...recoveringOn(copy.writer, root, log), signerFor });
    await expect(found).rejects.toMatchObject({ code: "unknown-signer" });
  });

  test("that cannot be reached is no archive that is empty", async () => {
    await rename(root, `${root}.away`);
    const found = recover(recoveringOn(copy.writer, root, log));
    await expect(found).rejects.toMatchObject({ code: "archive-unavailable" });
    await rename(`${root}.away`, root);
  });

  test("that lacks what the database was sealed to is not recovered from", async () => {
    await restore(copy, root, log);
    await rm(path(`checkpoint/${size}`));
    await expectRefused("archive-behind", `sealed to ${size}`);
  });

  test("of a log whose instance has another one here is refused", async () => {
    const other = openDoor(copy.writer, { archive: root, seed: "another" });
    house.doors.push(other);
    await begun(other, "refused", 2);
    await expectRefused("log-exists", "instance refused has log");
  });
});

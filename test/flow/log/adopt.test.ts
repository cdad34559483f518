import { cp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { folderSource } from "../../../audit/folder.ts";
import { encodeBase64 } from "../../../src/core/text.ts";
import { type Adopting, adopt } from "../../../src/flow/log/adopt.ts";
import { foresee, recover } from "../../../src/flow/log/recover.ts";
import { retain } from "../../../src/flow/log/retain.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import type { Archive } from "../../../src/store/archive.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import { readSizes } from "../../../src/store/checkpoints.ts";
import {
  recordAgreement,
  recordConflict,
  recordWitnessSize,
} from "../../../src/store/submissions.ts";
import { auditSource } from "../../audit/archive.ts";
import { freshDatabase } from "../../postgres.ts";
import {
  closeHouse,
  type Door,
  entriesOf,
  type House,
  ofKind,
  openHouse,
  signerFor,
  vkeyOf,
} from "../door.ts";
import { archived, archiveFolder } from "../folder.ts";
import {
  begun,
  expectProven,
  fill,
  recoveringOn,
  restore,
  sealerOn,
  tablesOf,
} from "../restored.ts";

let house: House;
let door: Door;
beforeAll(async () => {
  house = await openHouse();
  door = house.open();
});
afterAll(() => closeHouse(house));

const WHO = { by: "p_0123456789012345678901", reason: "the bucket is gone" };
const SALT = new Uint8Array(16).fill(7);

function adopting(archive: Archive | string, log: string): Adopting {
  return { ...sealerOn(house.database.writer, archive), log, random: () => SALT };
}

/** A log of three checkpoints, the last two of which end in one block, and an unsealed tail. */
async function sealedThrice(unique_id: string, seed: number): Promise<string> {
  const log = await begun(door, unique_id, seed);
  const sealer = sealerOn(house.database.writer, house.archive);
  await seal({ ...sealer, log });
  await fill(door, log, seed, 300);
  await seal({ ...sealer, log });
  await fill(door, log, seed, 20, 1_000);
  await seal({ ...sealer, log });
  await fill(door, log, seed, 3, 2_000);
  return log;
}

async function adoptions(log: string) {
  return ofKind(await entriesOf(house.database.reader, log), "archive_adopted");
}

test("an empty archive gets all that was sealed, an entry says so, and sealing goes on", async () => {
  const log = await sealedThrice("lost", 1);
  const root = await archiveFolder();
  const refusing = sealerOn(house.database.writer, root);
  await expect(seal({ ...refusing, log })).rejects.toMatchObject({ code: "log-behind" });
  const { index, sealed, size } = await adopt(adopting(root, log), WHO);
  const [adoption, ...others] = await adoptions(log);
  const [stored] = await house.database.reader`
    select root from checkpoints where log = ${log} and size = ${size}`;
  expect(others).toEqual([]);
  expect(adoption).toMatchObject({ index, body: { ...WHO, size: String(size) } });
  expect(adoption?.body.root).toBe(encodeBase64(stored?.["root"]));
  expect(sealed).toBe(index + 1n);

  const [before, after] = await Promise.all([archived(house.archive), archived(root)]);
  for (const [path, bytes] of before) {
    // Partial files whose full one is there need not be made again.
    if (path.startsWith(`${log}/`) && after.has(path)) expect(after.get(path), path).toBe(bytes);
    if (path.startsWith(`${log}/checkpoint/`)) expect(after.get(path)).toBe(bytes);
  }
  const { findings } = await auditSource(folderSource(root, log), { log, vkeys: [vkeyOf(log)] });
  expect([...findings.byCode]).toEqual([]);
  await expectProven(house.database);
  // The process that refused goes on by itself.
  await fill(door, log, 1, 3, 3_000);
  expect(await seal({ ...refusing, log })).toBeDefined();
  const copy = await freshDatabase();
  await restore(copy, root, log);
  expect(await tablesOf(copy, log)).toEqual(await tablesOf(house.database, log));
  await copy.drop();
});

/** An archive whose process is killed before its n-th effect. */
function mortal(root: string, effects: number): Archive {
  const archive = folderArchive(root);
  let left = effects;
  const live = (): void => {
    if (left === 0) throw new Error("killed");
    left -= 1;
  };
  return {
    ...archive,
    put: async (files) => {
      live();
      await archive.put(files);
    },
    create: async (path, bytes) => {
      live();
      return await archive.create(path, bytes);
    },
  };
}

test("killed before any of its effects and run again, it says so once", async () => {
  const log = await sealedThrice("killed", 2);
  const root = await archiveFolder();
  let runs = 0;
  for (let whole = false; !whole; runs += 1) {
    const at = adopting(mortal(root, runs), log);
    const ended = await adopt(at, WHO).catch((error: Error & { code?: string }) => error);
    whole = "code" in ended && ended.code === "nothing-lost";
    if (!whole && !("size" in ended)) expect(ended).toMatchObject({ message: "killed" });
    if ("size" in ended) break;
  }
  expect(runs).toBeGreaterThan(6);
  expect(await adoptions(log)).toHaveLength(1);
  const sealer = sealerOn(house.database.writer, root);
  await seal({ ...sealer, log });
  const { findings } = await auditSource(folderSource(root, log), { log, vkeys: [vkeyOf(log)] });
  expect([...findings.byCode]).toEqual([]);
});

test("an archive with other content of the log is refused, and nothing is put beside it", async () => {
  const log = await sealedThrice("contradicted", 3);
  const foreign = await archiveFolder();
  await cp(join(house.archive, log), join(foreign, log), { recursive: true });
  await rm(join(foreign, log, "checkpoint"), { recursive: true });
  const [partial = ""] = await readdir(join(foreign, log, "tile/0/001.p"));
  const tile = join(foreign, log, "tile/0/001.p", partial);
  const other = join(foreign, log, "tile/0/000");
  await cp(other, tile);
  const before = await archived(foreign);
  const found = adopt(adopting(foreign, log), WHO);
  await expect(found).rejects.toMatchObject({ code: "archive-contradiction" });
  expect(await archived(foreign)).toEqual(before);
  expect(await adoptions(log)).toEqual([]);
});

test("where nothing is lost, nothing is adopted", async () => {
  const log = await sealedThrice("whole", 4);
  const whole = adopt(adopting(house.archive, log), WHO);
  await expect(whole).rejects.toMatchObject({ code: "nothing-lost" });
  const young = await begun(door, "young", 5);
  const unsealed = adopt(adopting(await archiveFolder(), young), WHO);
  await expect(unsealed).rejects.toMatchObject({ code: "nothing-lost" });
  expect(await adoptions(log)).toEqual([]);
});

test("a process that was left behind finds in the adopted archive what followed each checkpoint", async () => {
  const log = await sealedThrice("claimed", 6);
  const root = await archiveFolder();
  await adopt(adopting(root, log), WHO);
  const [before, after] = await Promise.all([archived(house.archive), archived(root)]);
  const claims = [...before].filter(([path]) => path.startsWith(`${log}/claim/`));
  expect(claims).toHaveLength(3);
  for (const [path, bytes] of claims) expect(after.get(path), path).toBe(bytes);
});

test("a log of which a witness has signed more, or another tree, is adopted only knowingly, and the entry says so", async () => {
  const log = await sealedThrice("ahead", 7);
  const sql = house.database.writer;
  const adopted = (despiteWitness = false) =>
    archiveFolder().then((root) => adopt(adopting(root, log), { ...WHO, despiteWitness }));
  await recordWitnessSize(sql, log, "00000001", 100_000n);
  await expect(adopted()).rejects.toMatchObject({ code: "witness-ahead" });
  await recordAgreement(sql, log, "00000001");
  await recordConflict(sql, log, "00000002");
  await expect(adopted()).rejects.toMatchObject({ code: "witness-ahead" });
  expect(await adoptions(log)).toEqual([]);
  await recordWitnessSize(sql, log, "00000001", 100_000n);
  await adopted(true);
  expect(await adoptions(log)).toMatchObject([
    { body: { reason: "the bucket is gone (witness 00000001 at 100000)" } },
  ]);
});

describe("an archive that lets nothing go keeps what retention removed", () => {
  async function kept(unique_id: string, seed: number) {
    const log = await sealedThrice(unique_id, seed);
    const root = await archiveFolder();
    await cp(join(house.archive, log), join(root, log), { recursive: true });
    const archive = { ...folderArchive(root), remove: async () => undefined };
    const sql = house.database.writer;
    const clock = { now: () => Date.UTC(2027, 1, 1) };
    while (await retain({ sql, archive, clock, log, signerFor }));
    const rows = await readSizes(sql, log);
    const sizes = await archive.sizes(log);
    expect([rows.length, sizes.length]).toEqual([1, 3]);
    return { log, root, archive, newest: sizes.at(-1) ?? 0n };
  }

  test("and nothing is missing then", async () => {
    const { log, archive } = await kept("undeleted", 8);
    const recovering = recoveringOn(house.database.writer, archive, log);
    expect(await foresee(recovering)).toMatchObject({ checkpoints: 0, aside: 0 });
    expect(await recover(recovering)).toMatchObject({ checkpoints: 0 });
    expect(await readSizes(house.database.writer, log)).toHaveLength(1);
  });

  test("and is adopted where it lost the newest, unless it is of another log", async () => {
    const { log, root, archive, newest } = await kept("unlost", 9);
    await rm(join(root, log, "checkpoint", String(newest)));
    const [oldest = 0n] = await archive.sizes(log);
    const path = join(root, log, "checkpoint", String(oldest));
    const note = await readFile(path, "utf8");
    const [, ...rest] = note.split("\n");
    await writeFile(path, [`door.test/${"0".repeat(32)}`, ...rest].join("\n"));
    const refused = adopt(adopting(archive, log), WHO);
    await expect(refused).rejects.toMatchObject({ code: "archive-contradiction" });
    await writeFile(path, note);
    expect(await adopt(adopting(archive, log), WHO)).toMatchObject({ size: newest });
    const { findings } = await auditSource(folderSource(root, log), { log, vkeys: [vkeyOf(log)] });
    expect([...findings.byCode]).toEqual([]);
  });
});

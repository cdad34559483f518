import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { encodeUtf8 } from "../../src/core/text.ts";
import { folderArchive } from "../../src/store/archive-folder.ts";
import { openArchive } from "../../src/store/archive-location.ts";
import { testOnSmallDisk } from "../small-disk.ts";

const LOG = "0123456789abcdef0123456789abcdef";
const TILE = `${LOG}/tile/0/x001/x234/067`;
const CHECKPOINT = `${LOG}/checkpoint/300`;
const bytes = encodeUtf8("what is archived");
const other = encodeUtf8("something else");

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "minutebook-archive-"));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
});

test("what was put is there, in folders made on demand, and nothing else lies beside it", async () => {
  const archive = folderArchive(root);
  const partial = `${LOG}/tile/entries/000.p/255`;
  await archive.put([
    { path: TILE, bytes },
    { path: partial, bytes: other },
  ]);
  expect(await archive.get(TILE)).toEqual(Buffer.from(bytes));
  expect(await archive.get(partial)).toEqual(Buffer.from(other));
  const found = await readdir(root, { recursive: true, withFileTypes: true });
  expect(found.filter((entry) => entry.isFile()).map(({ name }) => name)).toEqual(
    expect.arrayContaining(["067", "255"]),
  );
  expect(found.filter((entry) => entry.isFile())).toHaveLength(2);
});

test("the same bytes may come again, other bytes are a contradiction and change nothing", async () => {
  const archive = folderArchive(root);
  await archive.put([{ path: TILE, bytes }]);
  await archive.put([{ path: TILE, bytes }]);
  const again = archive.put([{ path: TILE, bytes: other }]);
  await expect(again).rejects.toMatchObject({ code: "archive-contradiction" });
  expect(await archive.get(TILE)).toEqual(Buffer.from(bytes));
});

test("of many that create one file at once exactly one does, and its bytes stand", async () => {
  const contents = Array.from({ length: 20 }, (_, i) => encodeUtf8(`note ${i}`));
  const outcomes = await Promise.all(
    contents.map((content) => folderArchive(root).create(CHECKPOINT, content)),
  );
  expect(outcomes.filter((outcome) => outcome === "created")).toHaveLength(1);
  const stands = contents[outcomes.indexOf("created")] ?? bytes;
  expect(await readFile(join(root, CHECKPOINT))).toEqual(Buffer.from(stands));
});

test.each([
  "../outside",
  `${LOG}/../../outside`,
  `${LOG}/checkpoint/../../../outside`,
  `${LOG}/checkpoint/01`,
  `${LOG}/checkpoint/`,
  `${LOG}/tile/0/1`,
  `${LOG}/tile/0/000.p/0`,
  `${LOG}/tile/0/000\0`,
  `/${LOG}/checkpoint/1`,
  `${LOG.toUpperCase()}/checkpoint/1`,
  `${LOG}/checkpoint/1\n`,
  "",
])("%j is no path of an archive", async (path) => {
  const archive = folderArchive(root);
  await expect(archive.put([{ path, bytes }])).rejects.toThrow("nothing is stored at");
  await expect(archive.create(path, bytes)).rejects.toThrow("nothing is stored at");
  await expect(archive.get(path)).rejects.toThrow("nothing is stored at");
  await expect(archive.latestCheckpoint(path)).rejects.toThrow("not a log's id");
});

describe("the latest checkpoint", () => {
  test("is that of the largest number, whatever else lies in the folder", async () => {
    const archive = folderArchive(root);
    for (const size of [9, 10, 2, 300]) {
      await archive.create(`${LOG}/checkpoint/${size}`, encodeUtf8(`note ${size}`));
    }
    for (const name of ["999.tmp", "0400", "latest", ".500", "99999999999999999999"]) {
      await writeFile(join(root, LOG, "checkpoint", name), "stray");
    }
    expect(await archive.latestCheckpoint(LOG)).toEqual({ size: 300n, note: "note 300" });
  });

  test("is of sizes beyond 2^53 too", async () => {
    const archive = folderArchive(root);
    for (const size of [9007199254740992n, 9007199254740993n]) {
      await archive.create(`${LOG}/checkpoint/${size}`, encodeUtf8(`note ${size}`));
    }
    expect(await archive.latestCheckpoint(LOG)).toMatchObject({ size: 9007199254740993n });
  });

  test("is none for a log that the archive does not know, or only knows tiles of", async () => {
    const archive = folderArchive(root);
    expect(await archive.latestCheckpoint(LOG)).toBeUndefined();
    await archive.put([{ path: TILE, bytes }]);
    expect(await archive.latestCheckpoint(LOG)).toBeUndefined();
    expect(await archive.get(CHECKPOINT)).toBeUndefined();
  });

  test("is empty, which no key has signed, when its bytes are no text", async () => {
    const archive = folderArchive(root);
    await archive.create(CHECKPOINT, Uint8Array.of(0xff));
    expect(await archive.latestCheckpoint(LOG)).toEqual({ size: 300n, note: "" });
  });
});

describe("an archive that cannot be reached", () => {
  const unavailable = { code: "archive-unavailable" };

  async function expectUnavailable(place: string): Promise<void> {
    const archive = folderArchive(place);
    await expect(archive.put([{ path: TILE, bytes }])).rejects.toMatchObject(unavailable);
    await expect(archive.create(CHECKPOINT, bytes)).rejects.toMatchObject(unavailable);
    await expect(archive.get(CHECKPOINT)).rejects.toMatchObject(unavailable);
    await expect(archive.latestCheckpoint(LOG)).rejects.toMatchObject(unavailable);
  }

  test("says so when its folder is not there, and does not make one", async () => {
    await expectUnavailable(join(root, "absent"));
    expect(await readdir(root)).toEqual([]);
  });

  test("says so when its folder vanished while the process ran", async () => {
    const archive = folderArchive(root);
    await archive.put([{ path: TILE, bytes }]);
    await rm(root, { recursive: true });
    const putting = archive.put([{ path: TILE, bytes }]);
    await expect(putting).rejects.toMatchObject(unavailable);
    await expect(archive.get(TILE)).rejects.toMatchObject(unavailable);
    await expect(archive.latestCheckpoint(LOG)).rejects.toMatchObject(unavailable);
  });

  test("says so when a file stands where its folder should", async () => {
    await writeFile(join(root, "file"), "");
    await expectUnavailable(join(root, "file"));
  });

  test("says so when a file stands in the way of a folder", async () => {
    await writeFile(join(root, LOG), "");
    await expectUnavailable(root);
  });
});

test("what a killed process left staged is swept after an hour, and not before", async () => {
  const staging = join(root, ".staging");
  await mkdir(staging);
  await writeFile(join(staging, "old"), "");
  await writeFile(join(staging, "new"), "");
  const hoursAgo = Date.now() / 1000 - 7_200;
  await utimes(join(staging, "old"), hoursAgo, hoursAgo);
  await folderArchive(root).put([{ path: TILE, bytes }]);
  expect(await readdir(staging)).toEqual(["new"]);
});

test("ARCHIVE_URL names a folder as a URL or as a path, and nothing that is no archive", async () => {
  await (await openArchive(pathToFileURL(root).href)).create(CHECKPOINT, bytes);
  expect(await (await openArchive(root)).get(CHECKPOINT)).toEqual(Buffer.from(bytes));
  await expect(openArchive("https://archive.example/")).rejects.toThrow("neither a folder nor");
});

testOnSmallDisk(
  "a full disk is unavailable, leaves no torn file, and is got over when there is room",
  async () => {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=256k", "minutebook-test", root]);
    onTestFinished(() => {
      execFileSync("umount", ["--lazy", root]);
    });
    const archive = folderArchive(root);
    await archive.put([{ path: TILE, bytes }]);
    await writeFile(join(root, "ballast"), new Uint8Array(224 * 1024));
    const large = new Uint8Array(64 * 1024).fill(7);
    const path = `${LOG}/tile/entries/000`;
    const full = archive.put([{ path, bytes: large }]);
    await expect(full).rejects.toMatchObject({
      code: "archive-unavailable",
      cause: { code: "ENOSPC" },
    });
    expect(await archive.get(path)).toBeUndefined();
    expect(await readdir(join(root, ".staging"))).toEqual([]);
    await rm(join(root, "ballast"));
    await archive.put([{ path, bytes: large }]);
    expect(await archive.get(path)).toEqual(Buffer.from(large));
    expect(await archive.get(TILE)).toEqual(Buffer.from(bytes));
  },
);

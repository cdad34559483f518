import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
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

test("files lie in folders that are made on demand, and nothing else lies beside them", async () => {
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

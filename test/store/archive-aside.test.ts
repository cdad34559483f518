/** What a recovery asks of an archive: which logs and checkpoints there are, and room for others. */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { encodeUtf8 } from "../../src/core/text.ts";
import { folderArchive } from "../../src/store/archive-folder.ts";

const LOG = "0123456789abcdef0123456789abcdef";
const OTHER = "f".repeat(32);
const TILE = `${LOG}/tile/0/001`;
const bytes = encodeUtf8("what nobody signed");

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "minutebook-archive-"));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
});

test("logs are those with a checkpoint, sizes ascend as numbers", async () => {
  const archive = folderArchive(root);
  await archive.put([
    ...["9", "10", "2"].map((size) => ({ path: `${LOG}/checkpoint/${size}`, bytes })),
    { path: `${OTHER}/tile/0/000`, bytes },
  ]);
  expect(await archive.logs()).toEqual([LOG]);
  expect(await archive.sizes(LOG)).toEqual([2n, 9n, 10n]);
  expect(await archive.sizes(OTHER)).toEqual([]);
});

test("what is set aside frees its name and stays readable, however often it happens", async () => {
  const archive = folderArchive(root);
  const other = encodeUtf8("what nobody signed either");
  for (const content of [bytes, other, bytes]) {
    await archive.put([{ path: TILE, bytes: content }]);
    await archive.setAside([TILE, `${LOG}/tile/0/002`]);
    expect(await archive.get(TILE)).toBeUndefined();
  }
  const aside = await readdir(join(root, LOG, "aside"));
  const kept = await Promise.all(
    aside.map((name) => archive.get(`${LOG}/aside/${name}/tile/0/001`)),
  );
  expect(kept.map((found) => found && Buffer.from(found).toString()).sort()).toEqual([
    "what nobody signed",
    "what nobody signed either",
  ]);
});

test.each([
  `${LOG}/checkpoint/3`,
  `${LOG}/cosignature/3/01234567`,
  `${LOG}/../${OTHER}/tile/0/001`,
])("%s is not set aside", async (path) => {
  const archive = folderArchive(root);
  if (!path.includes("..")) await archive.create(path, bytes);
  await expect(archive.setAside([path])).rejects.toThrow();
  if (!path.includes("..")) expect(await archive.get(path)).toEqual(Buffer.from(bytes));
});

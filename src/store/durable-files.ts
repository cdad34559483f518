/** Files in a folder that are there whole or not at all, and stay there after a power cut. */
import { randomBytes } from "node:crypto";
import { link, mkdir, open, readdir, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { settled } from "./settled.ts";

export interface NewFile {
  /** Below the root, with `/`. */
  path: string;
  bytes: Uint8Array;
}

/** Beside all that is archived, so that every other folder holds nothing but finished files. */
export const STAGING = ".staging";
/** A process that was killed leaves its staged file behind; nobody stages one for an hour. */
const STALE_MS = 3_600_000;
const DURABLE_FOLDERS_MAX = 10_000;

/**
 * Creates files below `root`, which must exist: a root that is made on demand would hide a disk that
 * is not mounted. Resolves, when files and folders are on disk, to what it found for each file:
 * true, created; false, there was one before, and it stays as it is.
 */
export function durableFiles(root: string): (files: readonly NewFile[]) => Promise<boolean[]> {
  // Folders whose own names are on disk, so that a file below costs the sync of one folder only.
  const durable = new Set<string>();
  let swept = false;

  return async (files) => {
    if (!swept) await sweep(join(root, STAGING));
    swept = true;
    // All are waited for, also after a failure: nothing is still being written once this rejects.
    const created = await settled(files.map((file) => create(root, file, durable)));
    const folders = new Set(files.flatMap((file) => foldersAbove(file.path, durable)));
    await settled(Array.from(folders, (folder) => syncFolder(join(root, folder))));
    if (durable.size > DURABLE_FOLDERS_MAX) durable.clear();
    for (const folder of folders) durable.add(folder);
    return created;
  };
}

/** The bytes are on disk before their name is made, and link(2) replaces no file, where rename(2) would. */
async function create(
  root: string,
  { path, bytes }: NewFile,
  durable: Set<string>,
): Promise<boolean> {
  const staged = join(root, STAGING, randomBytes(16).toString("hex"));
  const target = join(root, path);
  try {
    const file = await open(staged, "wx");
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    return await linked(staged, target).catch(async (error: unknown) => {
      if (errorCode(error) !== "ENOENT") throw error;
      await makeFolders(root, dirname(path));
      // One that was removed and made again is known no more.
      for (const folder of foldersAbove(path, new Set())) durable.delete(folder);
      return await linked(staged, target);
    });
  } finally {
    await removed(staged);
  }
}

/**
 * One by one from the root down: all at once would also make a root that has just gone away, and Node's own way
 * never ends where a folder that is there takes none (/proc).
 */
export async function makeFolders(root: string, folder: string): Promise<void> {
  if (folder === ".") return;
  const path = join(root, folder);
  try {
    await makeFolder(path);
  } catch (error) {
    if (errorCode(error) !== "ENOENT" || dirname(folder) === ".") throw error;
    await makeFolders(root, dirname(folder));
    await makeFolder(path);
  }
}

async function makeFolder(path: string): Promise<void> {
  await mkdir(path).catch((error: unknown) => {
    if (errorCode(error) !== "EEXIST") throw error;
  });
}

async function linked(staged: string, target: string): Promise<boolean> {
  try {
    await link(staged, target);
    return true;
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false;
    throw error;
  }
}

/** Nothing to say when it fails: the file's own fate is known, and a later sweep takes the rest. */
async function removed(staged: string): Promise<void> {
  await unlink(staged).catch(() => undefined);
}

/** The file's folder, and those above it up to the first whose own name is known to be on disk. */
function foldersAbove(path: string, durable: ReadonlySet<string>): string[] {
  const folders: string[] = [];
  let folder = path;
  do {
    folder = dirname(folder);
    folders.push(folder);
  } while (folder !== "." && !durable.has(folder));
  return folders;
}

export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Removes what was staged long ago; makes the folder where it is missing. */
export async function sweep(staging: string): Promise<void> {
  await makeFolder(staging);
  const stale = Date.now() - STALE_MS;
  for (const name of await readdir(staging)) {
    const path = join(staging, name);
    const found = await stat(path).catch(() => undefined); // another process swept it first
    if (found !== undefined && found.mtimeMs < stale) await removed(path);
  }
}

export function errorCode(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

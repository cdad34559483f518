/**
 * An archive in a folder: `<folder>/<log>/tile/…` and `<folder>/<log>/checkpoint/…`. Below the log's folder
 * a symbolic link is neither read nor listed: no archive has one, and it may lead anywhere.
 */
import {
  closeSync,
  constants,
  type Dir,
  type Dirent,
  fstatSync,
  lstatSync,
  openSync,
  readSync,
  statSync,
} from "node:fs";
import { open, opendir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { makeFolders } from "./durable.ts";
import { CannotLook } from "./finding.ts";
import { bytesMax, type Source } from "./source.ts";

const LOG = /^[0-9a-f]{32}$/;

/** The logs that the folder has archives of. Throws `CannotLook` when it cannot be read. */
export async function logsIn(folder: string): Promise<string[]> {
  const logs: string[] = [];
  for await (const { name } of entriesOf(folder)) if (LOG.test(name)) logs.push(name);
  if (logs.length === 0) throw new CannotLook(`${folder} holds no archive of a log`);
  return logs.sort();
}

export function folderSource(folder: string, log: string): Source {
  const root = join(folder, log);
  const assertPlain = linkGuard(root);
  return {
    // Not by a promise of node:fs: its trips between threads cost more than reading a bundle does.
    read: (path) =>
      orNothing(path, async () => {
        assertPlain(dirname(path));
        return readFile(join(root, path), bytesMax(path));
      }),
    list: async function* (path) {
      await orNothing(path, async () => assertPlain(path));
      yield* filesBelow(root, path);
    },
  };
}

/** Throws `CannotLook` where a folder on the way to a path, or the path itself, is a link. */
function linkGuard(root: string): (path: string) => void {
  const plain = new Set(["", "."]);
  const assertPlain = (path: string): void => {
    if (plain.has(path)) return;
    assertPlain(dirname(path));
    const stat = lstatSync(join(root, path), { throwIfNoEntry: false });
    if (stat?.isSymbolicLink()) throw linked(path);
    if (stat !== undefined) plain.add(path);
  };
  return assertPlain;
}

function linked(path: string): CannotLook {
  return new CannotLook(`${path} is a symbolic link, and an archive has none`);
}

export interface Store {
  /** Each file whole or not at all, over what may be there under its name. */
  put(path: string, bytes: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

/** Writes files of the log. What a killed one left half-written is removed: so there is one at a time. */
export async function folderStore(folder: string, log: string): Promise<Store> {
  const staging = join(folder, ".staging");
  const clear = (): Promise<void> =>
    writing(staging, () => rm(staging, { recursive: true, force: true }));
  await clear();
  makeFolders(staging);
  let written = 0;
  return {
    put: async (path, bytes) => {
      const [staged, name] = [join(staging, String(written++)), join(folder, log, path)];
      await writing(name, async () => {
        await writeSynced(staged, bytes);
        makeFolders(dirname(name));
        await rename(staged, name);
      });
    },
    close: clear,
  };
}

/** Else a host that fails may keep the name and lose what is in it. */
async function writeSynced(path: string, bytes: Uint8Array): Promise<void> {
  const file = await open(path, "wx");
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function writing(path: string, write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    throw new CannotLook(`${path} cannot be written: ${codeOf(error)}`, { cause: error });
  }
}

/** Without waiting for whoever would write to a pipe, and without room for more than the kind may hold. */
function readFile(path: string, max: number): Uint8Array {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const stat = fstatSync(file);
    const bytes = new Uint8Array(stat.isFile() ? Math.min(stat.size, max + 1) : 0);
    let length = 0;
    while (length < bytes.length) {
      const count = readSync(file, bytes, length, bytes.length - length, length);
      if (count === 0) break;
      length += count;
    }
    return bytes.subarray(0, length);
  } finally {
    closeSync(file);
  }
}

async function* filesBelow(root: string, path: string): AsyncGenerator<string> {
  const folder = await orNothing(path, async () => openFolder(join(root, path)));
  if (folder === undefined) return;
  for await (const entry of folder) {
    const below = path === "" ? entry.name : `${path}/${entry.name}`;
    if (entry.isSymbolicLink()) throw linked(below);
    if (entry.isDirectory()) yield* filesBelow(root, below);
    else yield below;
  }
}

/** Asked first whether it is there: for most bundles and tiles there is none, and opening says so late. */
async function openFolder(path: string): Promise<Dir | undefined> {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
  return await opendir(path, { bufferSize: 1024 });
}

async function* entriesOf(folder: string): AsyncGenerator<Dirent> {
  const opened = await orNothing(folder, () => opendir(folder));
  if (opened === undefined) throw new CannotLook(`there is no folder ${folder}`);
  yield* opened;
}

/** Only what is not there is nothing; what cannot be read leaves the audit without a verdict. */
async function orNothing<T>(path: string, look: () => Promise<T>): Promise<T | undefined> {
  try {
    return await look();
  } catch (error) {
    if (error instanceof CannotLook) throw error;
    const code = codeOf(error);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new CannotLook(`${path} cannot be read: ${code}`, { cause: error });
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

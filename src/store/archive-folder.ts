/** An archive in a folder, which must exist and take hard links. Several processes may share it. */
import { opendir, readdir, readFile, rmdir, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { decodeUtf8, equal } from "../core/text.ts";
import {
  type Archive,
  ArchiveError,
  asidePath,
  assertFull,
  assertLog,
  assertMovable,
  assertPath,
  assertRemovable,
  checkpointPath,
  isLog,
  largestSize,
  partialPaths,
  sizesAmong,
} from "./archive.ts";
import { durableFiles, errorCode } from "./durable-files.ts";

export function folderArchive(root: string): Archive {
  const create = durableFiles(root);

  return {
    put: async (files) => {
      for (const file of files) assertPath(file.path);
      await reaching(async () => {
        const created = await create(files);
        for (const file of files.filter((_, i) => created[i] === false)) {
          const stored = await readFile(join(root, file.path));
          if (equal(stored, file.bytes)) continue;
          throw new ArchiveError("archive-contradiction", `${file.path} has other bytes already`);
        }
      });
    },

    create: async (path, bytes) => {
      assertPath(path);
      const [created] = await reaching(() => create([{ path, bytes }]));
      return created ? "created" : "exists";
    },

    get: async (path) => {
      assertPath(path);
      return await reaching(() => orAbsent(root, () => readFile(join(root, path))));
    },

    latestCheckpoint: async (log) => {
      assertLog(log);
      return await reaching(async () => {
        const size = await orAbsent(root, () => largestName(join(root, log, "checkpoint")));
        if (size === undefined) return undefined;
        const note = await readFile(join(root, checkpointPath(log, size)));
        // Bytes that are no text are no note either, and the empty one never verifies.
        return { size, note: decodeUtf8(note) ?? "" };
      });
    },

    partials: async (path) => {
      assertFull(path);
      const names = await reaching(() => orAbsent(root, () => readdir(join(root, `${path}.p`))));
      return partialPaths(path, names ?? []);
    },

    remove: async (paths) => {
      for (const path of paths) assertRemovable(path);
      await reaching(async () => {
        for (const path of paths) await orAbsent(root, () => unlink(join(root, path)));
        for (const folder of new Set(paths.map(dirname))) await removeEmptied(join(root, folder));
      });
    },

    ...listing(root),

    setAside: async (paths) => {
      for (const path of paths) assertMovable(path);
      await reaching(async () => {
        for (const path of paths) {
          const bytes = await orAbsent(root, () => readFile(join(root, path)));
          if (bytes === undefined) continue;
          // Its copy is durable before it goes.
          await create([{ path: asidePath(path, bytes), bytes }]);
          await orAbsent(root, () => unlink(join(root, path)));
        }
      });
    },

    lockMs: 0,
    lockedUntil: async () => undefined,
  };
}

function listing(root: string): Pick<Archive, "logs" | "sizes"> {
  const sizesOf = async (log: string): Promise<bigint[]> => {
    const folder = join(root, log, "checkpoint");
    return sizesAmong((await orAbsent(root, () => readdir(folder))) ?? []);
  };
  return {
    logs: () =>
      reaching(async () => {
        const names = (await readdir(root)).filter(isLog).sort();
        const sizes = await Promise.all(names.map(sizesOf));
        return names.filter((_, i) => sizes[i]?.length !== 0);
      }),

    sizes: async (log) => {
      assertLog(log);
      return await reaching(() => sizesOf(log));
    },
  };
}

async function reaching<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ArchiveError) throw error;
    throw new ArchiveError("archive-unavailable", "the archive cannot be reached", error);
  }
}

/** Undefined when what was looked for is not there; rejects when the root itself is not. */
async function orAbsent<T>(root: string, look: () => Promise<T>): Promise<T | undefined> {
  try {
    return await look();
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
    await stat(root);
    return undefined;
  }
}

async function largestName(folder: string): Promise<bigint | undefined> {
  let largest: bigint | undefined;
  for await (const { name } of await opendir(folder, { bufferSize: 1024 })) {
    largest = largestSize([name], largest);
  }
  return largest;
}

/** Of partial files, whose full one is there. Another process may have removed it, or put one in. */
async function removeEmptied(folder: string): Promise<void> {
  if (!folder.endsWith(".p")) return;
  await rmdir(folder).catch((error: unknown) => {
    const code = errorCode(error);
    if (code !== "ENOENT" && code !== "ENOTEMPTY") throw error;
  });
}

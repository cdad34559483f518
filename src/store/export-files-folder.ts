/**
 * Exports in a folder, which may be made, but not the one above it: that may be a disk that is not mounted. Nothing
 * is gone from a folder where nothing was ever staged: that may be where the disk is to be mounted.
 */
import { randomBytes } from "node:crypto";
import { link, mkdir, open, rename, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { errorCode, makeFolders, STAGING, sweep, syncFolder } from "./durable-files.ts";
import { assertExportPath, type ExportFiles, ExportFilesError } from "./export-files.ts";

const READ_BYTES = 256 * 1024;

export function folderExports(root: string): ExportFiles {
  let swept = false;
  const prepare = async (): Promise<void> => {
    await mkdir(root).catch(unlessCode("EEXIST"));
    if (!swept) await sweep(join(root, STAGING));
    swept = true;
  };

  const put = async (
    path: string,
    chunks: AsyncIterable<Uint8Array>,
    take: typeof rename,
  ): Promise<void> => {
    const staged = join(root, STAGING, randomBytes(16).toString("hex"));
    try {
      await fill(staged, chunks);
      await keeping(name(root, path, (target) => take(staged, target)));
    } finally {
      // What stays if this fails a later sweep takes.
      await unlink(staged).catch(() => undefined);
    }
  };

  return {
    write: async (path, chunks) => {
      assertExportPath(path);
      await keeping(prepare());
      await put(path, chunks, rename);
    },

    renew: async (path, chunks) => {
      assertExportPath(path);
      await keeping(prepare());
      await keeping(unlink(join(root, path)).catch(unlessCode("ENOENT")));
      // link(2) replaces no file, where rename(2) would.
      await put(path, chunks, link);
    },

    size: async (path) => {
      assertExportPath(path);
      const found = await keeping(unlessGone(root, stat(join(root, path))));
      return found?.size;
    },

    read: async function* (path, { from, to }) {
      assertExportPath(path);
      const file = await keeping(open(join(root, path), "r"));
      try {
        for (let at = from; at < to; ) {
          const buffer = new Uint8Array(Math.min(READ_BYTES, to - at));
          const { bytesRead } = await keeping(file.read(buffer, 0, buffer.length, at));
          if (bytesRead === 0) throw new ExportFilesError("exports-unavailable", "cut short");
          yield buffer.subarray(0, bytesRead);
          at += bytesRead;
        }
      } finally {
        await file.close();
      }
    },

    remove: async (path) => {
      assertExportPath(path);
      await keeping(unlessGone(root, unlink(join(root, path))));
    },
  };
}

async function fill(staged: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await keeping(open(staged, "wx"));
  try {
    for await (const chunk of chunks) await keeping(file.writeFile(chunk));
    await keeping(file.sync());
  } finally {
    await file.close();
  }
}

/** The bytes are on disk before they have their name, and the name before anybody is told of it. */
async function name(
  root: string,
  path: string,
  take: (target: string) => Promise<void>,
): Promise<void> {
  await makeFolders(root, dirname(path));
  await take(join(root, path));
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    await syncFolder(join(root, folder));
    if (folder === ".") return;
  }
}

/** A write may be refused by the disk's end, or by that of somebody's share of it. */
async function keeping<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const full = ["ENOSPC", "EDQUOT"].includes(String(errorCode(error)));
    if (full) throw new ExportFilesError("no-room", "there is no room for exports", error);
    throw new ExportFilesError("exports-unavailable", "exports cannot be reached", error);
  }
}

/** @throws where what says that this is the folder is missing too */
async function unlessGone<T>(root: string, work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
    await stat(join(root, STAGING));
    return undefined;
  }
}

function unlessCode(code: string): (error: unknown) => undefined {
  return (error) => {
    if (errorCode(error) !== code) throw error;
    return undefined;
  };
}

/**
 * The archive: tiles, bundles and checkpoints outside the database, shared by all processes of the
 * service. Nothing in it is ever replaced. Every path begins with the log's id:
 * `<log>/tile/…` (core/tile.ts), `<log>/checkpoint/<size>` and `<log>/cosignature/<size>/<key id>`.
 */
import { opendir, readFile, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { decodeUtf8, equal } from "../core/text.ts";
import { durableFiles, errorCode, type NewFile } from "./durable-files.ts";

export interface Archive {
  /**
   * Stores files, and resolves when they and their folders are durable. The same bytes again are
   * fine. One call syncs each folder once: put together what belongs together.
   *
   * @throws ArchiveError `archive-contradiction` where a file has other bytes already
   */
  put(files: readonly NewFile[]): Promise<void>;

  /** Stores one file unless there is one of any content, and resolves when it is durable. */
  create(path: string, bytes: Uint8Array): Promise<"created" | "exists">;

  get(path: string): Promise<Uint8Array | undefined>;

  /**
   * The checkpoint of the largest size; its signature is for the caller to verify. Reads the names
   * of all checkpoints of the log, so it is asked seldom.
   */
  latestCheckpoint(log: string): Promise<{ size: bigint; note: string } | undefined>;
}

/** Every method of an archive may throw one of `archive-unavailable`. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
  readonly code: "archive-contradiction" | "archive-unavailable";

  constructor(code: ArchiveError["code"], message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

/** What is written here is fixed in form; a path of any other could leave the root. */
const PATH =
  /^[0-9a-f]{32}\/(?:checkpoint\/(?:0|[1-9][0-9]{0,18})|cosignature\/(?:0|[1-9][0-9]{0,18})\/[0-9a-f]{8}|tile\/(?:entries|[0-9]{1,2})\/(?:x[0-9]{3}\/)*[0-9]{3}(?:\.p\/[1-9][0-9]{0,2})?)$/;
const LOG = /^[0-9a-f]{32}$/;
const SIZE = /^(?:0|[1-9][0-9]{0,18})$/;
const SCHEME = /^[a-z][a-z0-9+.-]+:/i;

/**
 * Opens what ARCHIVE_URL names: a folder, as `file:///…` or as a plain path.
 *
 * @throws Error on another kind of URL
 */
export function openArchive(location: string): Archive {
  if (location.startsWith("file:")) return folderArchive(fileURLToPath(location));
  if (SCHEME.test(location)) throw new Error("archive: only a folder can be one");
  return folderArchive(resolve(location));
}

export function checkpointPath(log: string, size: bigint): string {
  return `${log}/checkpoint/${size}`;
}

export function cosignaturePath(log: string, size: bigint, keyId: string): string {
  return `${log}/cosignature/${size}/${keyId}`;
}

/** An archive in a folder, which must exist and take hard links. Several processes may share it. */
export function folderArchive(root: string): Archive {
  const create = durableFiles(root);
  const reaching = <T>(work: () => Promise<T>): Promise<T> =>
    work().catch((error: unknown) => {
      if (error instanceof ArchiveError) throw error;
      throw new ArchiveError("archive-unavailable", "the archive cannot be reached", error);
    });

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
      if (!LOG.test(log)) throw new Error("archive: not a log's id");
      return await reaching(async () => {
        const size = await orAbsent(root, () => largestName(join(root, log, "checkpoint")));
        if (size === undefined) return undefined;
        const note = await readFile(join(root, checkpointPath(log, size)));
        // Bytes that are no text are no note either, and the empty one never verifies.
        return { size, note: decodeUtf8(note) ?? "" };
      });
    },
  };
}

function assertPath(path: string): void {
  if (!PATH.test(path)) throw new Error(`archive: nothing is stored at ${path}`);
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
    if (!SIZE.test(name)) continue;
    const size = BigInt(name);
    if (largest === undefined || size > largest) largest = size;
  }
  return largest;
}

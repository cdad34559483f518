/**
 * An archive in an S3-compatible bucket that honours `If-None-Match: *`. One that does not would let two
 * sealers sign two truths, so it is tried before anything is written.
 */
import { randomBytes } from "node:crypto";
import { decodeUtf8, encodeUtf8, equal } from "../core/text.ts";
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
import type { NewFile } from "./durable-files.ts";
import { parseS3Url } from "./s3-location.ts";
import { type Lock, mayPass, type S3Objects, type S3Patience, s3Objects } from "./s3-objects.ts";
import { settled } from "./settled.ts";

const DAY_MS = 86_400_000;
const RIVALS = 4;

/**
 * Opens the archive. Credentials, and the region if none is named, come from where AWS's SDKs look. A
 * store that cannot be reached now is tried before the first write.
 *
 * @throws Error for a URL that says anything else, a bucket that replaces or does not lock objects, or
 *   one that refuses us
 */
export async function openS3Archive(url: string, patience?: S3Patience): Promise<Archive> {
  const { bucket, prefix, region, endpoint, pathStyle, lock } = parseS3Url(url);
  const given = {
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && { endpoint }),
  };
  const objects = s3Objects(bucket, { ...given, forcePathStyle: pathStyle }, patience);
  const lockMs = (lock?.days ?? 0) * DAY_MS;
  const lockNow = (): Lock | undefined =>
    lock && { mode: lock.mode, until: new Date(Date.now() + lockMs) };

  let trust: Promise<void> | undefined;
  const trusted = async (): Promise<void> => {
    trust ??= assertArbiter(objects, `${prefix}probe/`, lockNow());
    await trust.catch((error: unknown) => {
      trust = undefined;
      throw error;
    });
  };
  await trusted().catch((error: unknown) => {
    if (!(error instanceof ArchiveError && mayPass(error.cause))) throw error;
  });

  const create = async (path: string, bytes: Uint8Array): Promise<"created" | "exists"> => {
    assertPath(path);
    await trusted().catch((error: unknown) => {
      if (error instanceof ArchiveError) throw error;
      throw new ArchiveError("archive-unavailable", "the archive is not to be trusted", error);
    });
    return await objects.create(`${prefix}${path}`, bytes, lockNow());
  };
  return {
    ...reading(objects, prefix),
    create,
    put: putting(create, objects, prefix),
    remove: async (paths) => {
      for (const path of paths) assertRemovable(path);
      await objects.remove(paths.map((path) => `${prefix}${path}`));
    },
    setAside: async (paths) => {
      for (const path of paths) assertMovable(path);
      for (const path of paths) {
        const bytes = await objects.read(`${prefix}${path}`);
        if (bytes === undefined) continue;
        await create(asidePath(path, bytes), bytes);
        await objects.remove([`${prefix}${path}`]);
        if ((await objects.read(`${prefix}${path}`)) === undefined) continue;
        throw new ArchiveError("archive-contradiction", `the bucket does not let go of ${path}`);
      }
    },
    lockMs,
  };
}

function putting(create: Archive["create"], objects: S3Objects, prefix: string): Archive["put"] {
  const putOne = async ({ path, bytes }: NewFile): Promise<void> => {
    if ((await create(path, bytes)) === "created") return;
    const stored = await objects.read(`${prefix}${path}`);
    if (stored !== undefined && equal(stored, bytes)) return;
    throw new ArchiveError("archive-contradiction", `${path} has other bytes already`);
  };
  return async (files) => {
    for (const { path } of files) assertPath(path);
    await settled(files.map(putOne));
  };
}

type Reading = Pick<
  Archive,
  "get" | "latestCheckpoint" | "partials" | "logs" | "sizes" | "lockedUntil"
>;

function reading(objects: S3Objects, prefix: string): Reading {
  const get = async (path: string): Promise<Uint8Array | undefined> => {
    assertPath(path);
    return await objects.read(`${prefix}${path}`);
  };
  return {
    get,

    latestCheckpoint: async (log) => {
      assertLog(log);
      let size: bigint | undefined;
      for await (const page of objects.names(`${prefix}${log}/checkpoint/`)) {
        size = largestSize(page, size);
      }
      if (size === undefined) return undefined;
      const note = await get(checkpointPath(log, size));
      // Bytes that are no text are no note either, and the empty one never verifies.
      return { size, note: note === undefined ? "" : (decodeUtf8(note) ?? "") };
    },

    partials: async (path) => {
      assertFull(path);
      const found: string[] = [];
      for await (const page of objects.names(`${prefix}${path}.p/`)) {
        found.push(...partialPaths(path, page));
      }
      return found;
    },

    logs: async () => {
      const found: string[] = [];
      for await (const folders of objects.folders(prefix)) found.push(...folders.filter(isLog));
      return found.sort();
    },

    sizes: async (log) => {
      assertLog(log);
      const names: string[] = [];
      for await (const page of objects.names(`${prefix}${log}/checkpoint/`)) names.push(...page);
      return sizesAmong(names);
    },

    lockedUntil: async (path) => {
      assertPath(path);
      const found = await objects.lock(`${prefix}${path}`);
      // Governance is lifted by whoever the owner allows to.
      return found?.mode === "COMPLIANCE" ? found.until : undefined;
    },
  };
}

/**
 * Of rivals that create one object at once at most one may have done it, its bytes must stand, and
 * whoever comes later must be told.
 *
 * @throws Error when the store is no arbiter, or takes no lock though one is asked for; ArchiveError
 */
async function assertArbiter(
  objects: S3Objects,
  prefix: string,
  lock: Lock | undefined,
): Promise<void> {
  const key = `${prefix}${randomBytes(16).toString("hex")}`;
  const rivals = Array.from({ length: RIVALS }, (_, i) => encodeUtf8(`rival ${i}`));
  const outcomes = await settled(rivals.map((bytes) => objects.create(key, bytes)));
  const late = await objects.create(key, encodeUtf8("late"));
  const stored = await objects.read(key);
  await objects.remove([key]);
  const winners = rivals.filter((_, i) => outcomes[i] === "created");
  const stands = winners.every((bytes) => stored !== undefined && equal(stored, bytes));
  if (winners.length > 1 || late === "created" || !stands) {
    throw new Error("the bucket does not honour If-None-Match: two sealers could sign two truths");
  }
  if (lock === undefined) return;
  // One a day: it stays for as long as what it stands for would.
  const locked = `${prefix}lock-${new Date().toISOString().slice(0, 10)}`;
  await objects.create(locked, encodeUtf8("lock"), lock);
  if ((await objects.lock(locked)) === undefined) throw new Error("the bucket locks no objects");
}

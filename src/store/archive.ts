/**
 * The archive: what of a log lies outside the database, shared by all processes of the service. Nothing
 * in it is ever replaced. Every path begins with the log's id: `<log>/tile/…` (core/tile.ts),
 * `<log>/claim/<size>`, `<log>/checkpoint/<size>` and `<log>/cosignature/<size>/<key id>`; what a
 * recovery found and could not use lies under `<log>/aside/`.
 */
import { hash } from "node:crypto";
import type { NewFile } from "./durable-files.ts";

export interface Archive {
  /**
   * Stores files, and resolves when they and their names are durable. The same bytes again are fine.
   * Put together what belongs together: one call costs little more than its slowest file.
   *
   * @throws ArchiveError `archive-contradiction` where a file has other bytes already
   */
  put(files: readonly NewFile[]): Promise<void>;

  /** Stores one file unless there is one of any content, and resolves when it is durable. */
  create(path: string, bytes: Uint8Array): Promise<"created" | "exists">;

  get(path: string): Promise<Uint8Array | undefined>;

  /**
   * The checkpoint of the largest size; its signature is for the caller to verify. Reads the names
   * of all checkpoints of the log, which retention keeps few, and is asked seldom.
   */
  latestCheckpoint(log: string): Promise<{ size: bigint; note: string } | undefined>;

  /** Paths of the partial tiles beside a full one, or of the partial bundles. */
  partials(path: string): Promise<string[]>;

  /**
   * Removes checkpoints, claims, partial tiles and partial bundles; those that are gone already are
   * fine, and those that the store will not let go stay.
   *
   * @throws Error for a path of anything else
   */
  remove(paths: readonly string[]): Promise<void>;

  /** Logs of which there is a checkpoint. */
  logs(): Promise<string[]>;

  /** Sizes of all checkpoints of a log, ascending. */
  sizes(log: string): Promise<bigint[]>;

  /**
   * Moves tiles, bundles and claims, which no checkpoint may cover, to `<log>/aside/<hash>/…`, where
   * nothing reads them: their names are free again.
   *
   * @throws ArchiveError `archive-contradiction` where the store does not let one go
   */
  setAside(paths: readonly string[]): Promise<void>;

  /** For how long nothing that is put can be removed, in milliseconds; 0 where it can be at once. */
  readonly lockMs: number;

  /** Until when not even the archive's owner can change or remove the file, as the store says now. */
  lockedUntil(path: string): Promise<Date | undefined>;
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

const LOG = "[0-9a-f]{32}";
const SIZE = "(?:0|[1-9][0-9]{0,18})";
const TILE = "tile/(?:entries|[0-9]{1,2})/(?:x[0-9]{3}/)*[0-9]{3}";
const PARTIAL = "\\.p/[1-9][0-9]{0,2}";
const UNSIGNED = `claim/${SIZE}|${TILE}(?:${PARTIAL})?`;
const ASIDE = `aside/[0-9a-f]{16}/(?:${UNSIGNED})`;
const ARCHIVED = new RegExp(
  `^${LOG}/(?:checkpoint/${SIZE}|cosignature/${SIZE}/[0-9a-f]{8}|${UNSIGNED}|${ASIDE})$`,
);
const MOVABLE = new RegExp(`^${LOG}/(?:${UNSIGNED})$`);
const FULL = new RegExp(`^${LOG}/${TILE}$`);
const REMOVABLE = new RegExp(`^${LOG}/(?:(?:claim|checkpoint)/${SIZE}|${TILE}${PARTIAL})$`);
const LOG_ALONE = new RegExp(`^${LOG}$`);
const SIZE_ALONE = new RegExp(`^${SIZE}$`);
const WIDTH_ALONE = /^[1-9][0-9]{0,2}$/;

/** What is written is fixed in form; a path of any other could leave the root. */
export function assertPath(path: string): void {
  if (!ARCHIVED.test(path)) throw new Error(`archive: nothing is stored at ${path}`);
}

export function assertLog(log: string): void {
  if (!LOG_ALONE.test(log)) throw new Error("archive: not a log's id");
}

export function assertFull(path: string): void {
  if (!FULL.test(path)) throw new Error(`archive: ${path} is no tile and no bundle`);
}

export function assertRemovable(path: string): void {
  if (!REMOVABLE.test(path)) throw new Error(`archive: ${path} stays`);
}

export function assertMovable(path: string): void {
  if (!MOVABLE.test(path)) throw new Error(`archive: ${path} stays`);
}

/** Where a file goes that is set aside: by its content, so that another one of that name can follow. */
export function asidePath(path: string, bytes: Uint8Array): string {
  const [log = "", ...rest] = path.split("/");
  return [log, "aside", hash("sha256", bytes).slice(0, 16), ...rest].join("/");
}

/** Ascending, of the names that are sizes. */
export function sizesAmong(names: Iterable<string>): bigint[] {
  const sizes = Array.from(names)
    .filter((name) => SIZE_ALONE.test(name))
    .map(BigInt);
  return sizes.sort((a, b) => (a < b ? -1 : 1));
}

export function isLog(name: string): boolean {
  return LOG_ALONE.test(name);
}

/** The largest of the sizes among these names, whatever else is among them. */
export function largestSize(names: Iterable<string>, before?: bigint): bigint | undefined {
  let largest = before;
  for (const name of names) {
    if (!SIZE_ALONE.test(name)) continue;
    const size = BigInt(name);
    if (largest === undefined || size > largest) largest = size;
  }
  return largest;
}

/** The paths of partial tiles or bundles, among the names that lie beside a full one. */
export function partialPaths(path: string, names: readonly string[]): string[] {
  return names.filter((name) => WIDTH_ALONE.test(name)).map((name) => `${path}.p/${name}`);
}

export function checkpointPath(log: string, size: bigint): string {
  return `${log}/checkpoint/${size}`;
}

/** What is to be signed after the checkpoint of this size. */
export function claimPath(log: string, size: bigint): string {
  return `${log}/claim/${size}`;
}

export function cosignaturePath(log: string, size: bigint, keyId: string): string {
  return `${log}/cosignature/${size}/${keyId}`;
}

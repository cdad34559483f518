/** Where exports are kept: files that are there whole or not at all, and can be read from any byte on. */

/** `signal` ends what a bucket is asked, and keeps it from being asked again; a folder is left to answer. */
export interface ExportFiles {
  /**
   * Resolves when file and name are durable. Of a write that fails, or of a process that dies in it, nothing
   * is left under the name; what was there before is replaced. What `chunks` throws is thrown.
   */
  write(path: string, chunks: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void>;
  /**
   * As `write`, of what one process makes at a time: what was there is gone from the beginning, and what anybody has
   * put there since stays. So whoever was stopped for long never puts an older file over a newer one.
   */
  renew(path: string, chunks: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void>;
  /** In bytes; undefined where there is no such file, and the place is there. */
  size(path: string, signal?: AbortSignal): Promise<number | undefined>;
  /** Bytes from … to−1. Nothing is opened before the first is asked for. */
  read(path: string, range: ByteRange, signal?: AbortSignal): AsyncGenerator<Uint8Array>;
  /** One that is gone already is fine. */
  remove(path: string, signal?: AbortSignal): Promise<void>;
}

export interface ByteRange {
  from: number;
  to: number;
}

/** Every method may throw one of `exports-unavailable`; `write` also `no-room`, which no patience helps. */
export class ExportFilesError extends Error {
  override readonly name = "ExportFilesError";
  readonly code: "exports-unavailable" | "no-room";

  constructor(code: ExportFilesError["code"], message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

const PART = "[a-z0-9_][a-z0-9_.-]*";
const PATH = new RegExp(`^${PART}(?:/${PART})*$`);

/** One of any other form could leave the root, or hide in it. */
export function assertExportPath(path: string): void {
  if (!PATH.test(path)) throw new Error(`exports: nothing is kept at ${path}`);
}

/**
 * An append-only journal: a folder of segments, of which each line is one commit,
 * `<first 16 hex digits of the JSON's SHA-256> <JSON>\n`, synced before `append` returns. So only the
 * last line can be torn, by a kill or by a full disk, and it is cut at the next start. A segment
 * begins with a snapshot of all that the segments before it say: a start reads one of them only. Where
 * that would be longer than can be read, no segment begins, and the last one goes on.
 */
import { createHash } from "node:crypto";
import {
  closeSync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";
import type { z } from "zod";
import { decodeUtf8, encodeUtf8 } from "../core/text.ts";
import { createFile, syncFolder, writeFully } from "./durable.ts";
import { AgentError, writeFailure } from "./failure.ts";
import { readLines } from "./lines.ts";

const SEGMENT_BYTES = 16 * 1024 * 1024;
/** A commit holds at most some hundred reports of 4 KiB. */
const COMMIT_BYTES_MAX = 8 * 1024 * 1024;
/** A snapshot of a spool has some 25 bytes for every report that is proven between two that are not. */
const LINE_BYTES_MAX = 64 * 1024 * 1024;
const SEGMENT_NAME = /^([0-9]{8})\.jsonl$/;
const CHECK_DIGITS = 16;

/** What the journal's records add up to. */
export interface Journaled<R> {
  /** One record that says as much as all so far. */
  snapshot(): R;
  apply(record: R): void;
}

export interface JournalOptions<R> {
  folder: string;
  schema: z.ZodType<R>;
  state: Journaled<R>;
  segmentBytes?: number;
  /** Of a snapshot. */
  snapshotBytesMax?: number;
}

export class Journal<R> {
  readonly #options: Required<JournalOptions<R>>;
  #segment: number;
  #fd: number;
  #size: number;
  /** Beyond it, a new segment begins. However large the snapshot, there is room for commits. */
  #full = 0;
  #broken = false;

  /**
   * Brings `state` to where the journal ends.
   * @throws AgentError `damaged`, when a line other than the last is not as it was written
   */
  constructor(options: JournalOptions<R>) {
    this.#options = { segmentBytes: SEGMENT_BYTES, snapshotBytesMax: LINE_BYTES_MAX, ...options };
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
    removeTemporaries(options.folder);
    const last = this.segments().at(-1);
    this.#segment = last ?? this.#create(1, this.#snapshot());
    this.#fd = openSync(this.#path(this.#segment), "r+");
    this.#size = this.#recover();
  }

  /** Numbers of the segments that are there, ascending. */
  segments(): number[] {
    return readdirSync(this.#options.folder)
      .flatMap((name) => SEGMENT_NAME.exec(name)?.[1] ?? [])
      .map(Number)
      .sort((a, b) => a - b);
  }

  /** The records of one segment as far as it reaches now, its snapshot first. */
  *read(segment: number): Generator<R> {
    const fd = openSync(this.#path(segment), "r");
    try {
      for (const line of readLines(fd, whole(fd))) {
        const record = this.#decode(line.bytes);
        if (record === undefined || !line.complete) throw this.#damaged(segment, line.start);
        yield record;
      }
    } finally {
      closeSync(fd);
    }
  }

  /**
   * Durable on return, and applied to the state.
   * @throws AgentError `no-space`; the journal then takes nothing more until it is opened again
   */
  append(record: R): void {
    if (this.#broken) throw new Error("journal: an append failed before");
    try {
      if (this.#size >= this.#full) this.#roll();
      const line = encodeUtf8(encodeLine(record));
      if (line.length > COMMIT_BYTES_MAX)
        throw new Error("journal: a commit that could not be read");
      writeFully(this.#fd, line, this.#size);
      fdatasyncSync(this.#fd);
      this.#size += line.length;
    } catch (cause) {
      this.#broken = true;
      ftruncateSync(this.#fd, this.#size);
      throw cause instanceof AgentError ? cause : writeFailure(this.#path(this.#segment), cause);
    }
    this.#options.state.apply(record);
  }

  /** Gone for good. Nothing but what its own records hold is lost: the next segment sums it up. */
  remove(segment: number): void {
    if (segment === this.#segment) throw new Error("journal: a segment that is written to");
    rmSync(this.#path(segment));
    syncFolder(this.#options.folder);
  }

  close(): void {
    closeSync(this.#fd);
  }

  #roll(): void {
    const snapshot = this.#snapshot();
    if (Buffer.byteLength(snapshot) > this.#options.snapshotBytesMax) {
      this.#full = this.#size + this.#options.segmentBytes;
      return;
    }
    this.#segment = this.#create(this.#segment + 1, snapshot);
    closeSync(this.#fd);
    this.#fd = openSync(this.#path(this.#segment), "r+");
    this.#size = fstatSync(this.#fd).size;
    this.#full = this.#size + this.#options.segmentBytes;
  }

  #snapshot(): string {
    return encodeLine(this.#options.state.snapshot());
  }

  #create(segment: number, text: string): number {
    if (!createFile(this.#path(segment), text)) throw new Error("journal: a segment came twice");
    return segment;
  }

  /** Applies the last segment and cuts a torn tail off; the size that remains. */
  #recover(): number {
    const bounds = whole(this.#fd);
    for (const line of readLines(this.#fd, bounds)) {
      const record = this.#decode(line.bytes);
      if (line.start === 0) this.#full = line.end + this.#options.segmentBytes;
      if (record !== undefined && line.complete) {
        this.#options.state.apply(record);
        continue;
      }
      // The first line came by an atomic link, and of the others only the last can be torn.
      if (line.start === 0 || line.end < bounds.to) throw this.#damaged(this.#segment, line.start);
      ftruncateSync(this.#fd, line.start);
      fdatasyncSync(this.#fd);
      return line.start;
    }
    return bounds.to;
  }

  #decode(bytes: Uint8Array | undefined): R | undefined {
    const line = bytes && decodeUtf8(bytes);
    if (line === undefined || line[CHECK_DIGITS] !== " ") return undefined;
    const json = line.slice(CHECK_DIGITS + 1);
    if (checkOf(json) !== line.slice(0, CHECK_DIGITS)) return undefined;
    return this.#options.schema.parse(JSON.parse(json));
  }

  #path(segment: number): string {
    return join(this.#options.folder, `${String(segment).padStart(8, "0")}.jsonl`);
  }

  #damaged(segment: number, at: number): AgentError {
    const place = `${this.#path(segment)}, byte ${at}`;
    return new AgentError("damaged", `${place}: not as it was written. Restore it from a backup.`);
  }
}

function encodeLine(record: unknown): string {
  const json = JSON.stringify(record);
  return `${checkOf(json)} ${json}\n`;
}

function checkOf(json: string): string {
  return createHash("sha256").update(json).digest("hex").slice(0, CHECK_DIGITS);
}

function whole(fd: number): { from: number; to: number; bytesMax: number } {
  return { from: 0, to: fstatSync(fd).size, bytesMax: LINE_BYTES_MAX };
}

function removeTemporaries(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (name.endsWith(".tmp")) rmSync(join(folder, name));
  }
}

/**
 * What a witness cosigned last of each log, durable before anybody is told. A log's states are files with
 * ascending numbers, and the next one is a hard link: the file system gives its name to one process only,
 * and no process that was killed leaves a lock behind.
 */
import { randomUUID } from "node:crypto";
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type Checkpoint, parseCheckpoint } from "../../src/core/checkpoint.ts";
import { linesOf } from "../../src/core/note.ts";
import { encodeHex, encodeUtf8 } from "../../src/core/text.ts";
import { syncFolder } from "../durable.ts";
import { CannotLook } from "../finding.ts";
import { sha256 } from "../native.ts";

/** The log's newest state at `readAt`; number 0, without a note, before the first. */
export interface State {
  number: number;
  readAt: number;
  cosigned: { note: string; checkpoint: Checkpoint } | undefined;
}

export interface StoreOptions {
  folder: string;
  /** Of the logs that are followed. */
  origins: readonly string[];
  /** Milliseconds since the epoch. */
  now(): number;
  /** Told of every effect on the folder, once it is there. */
  onEffect?(effect: "staged" | "linked" | "durable" | "cleared"): void;
}

/**
 * Who links a state must have looked at most this long ago. A state is removed only an hour after the
 * next one was written: so a name that was free to somebody in time has never been taken before.
 */
const TRY_MS_MAX = 10_000;
const KEPT_MS = 3_600_000;
const NUMBER = /^[1-9][0-9]{0,15}$/;

/** The name of a log among a witness's files, and in its monitoring addresses. */
export function nameOf(origin: string): string {
  return encodeHex(sha256(encodeUtf8(origin)));
}

export class WitnessStore {
  readonly #options: StoreOptions;

  /** Throws `CannotLook` where the folder is not there: made anew, it would have forgotten all it signed. */
  constructor(options: StoreOptions) {
    this.#options = options;
    const { folder, origins } = options;
    if (!existsSync(folder)) {
      throw new CannotLook(
        `there is no folder ${folder}: make it once, and never again for this key`,
      );
    }
    for (const origin of origins) mkdirSync(this.#folderOf(origin), { recursive: true });
    syncFolder(folder);
  }

  /** Whatever it says is durable. Throws where a state cannot be read: then nothing may be signed. */
  latest(origin: string): State {
    const readAt = this.#options.now();
    const folder = this.#folderOf(origin);
    const number = numbersIn(folder).at(-1) ?? 0;
    // Another process may have linked it a moment ago, and its host may fail in the next.
    syncFolder(folder);
    if (number === 0) return { number, readAt, cosigned: undefined };
    const note = readFileSync(join(folder, String(number)), "utf8");
    const checkpoint = parseCheckpoint(linesOf(note)?.text ?? "");
    if (checkpoint?.origin !== origin) throw new Error(`witness: state ${number} is damaged`);
    return { number, readAt, cosigned: { note, checkpoint } };
  }

  /** Whether the note is the log's newest state now, and durable; false where another was faster. */
  advance(origin: string, { number, readAt }: State, note: string): boolean {
    const { now, onEffect } = this.#options;
    const folder = this.#folderOf(origin);
    const staged = join(folder, `.${randomUUID()}`);
    try {
      writeFileSync(staged, note, { flag: "wx", flush: true });
      onEffect?.("staged");
      if (!link(staged, join(folder, String(number + 1)))) return false;
      onEffect?.("linked");
      syncFolder(folder);
      onEffect?.("durable");
    } finally {
      rmSync(staged, { force: true });
    }
    if (now() - readAt > TRY_MS_MAX) throw new Error("witness: keeping a state took too long");
    this.#clear(folder);
    onEffect?.("cleared");
    return true;
  }

  /** From the oldest on; and what killed processes left half-written. */
  #clear(folder: string): void {
    const isOld = (name: string): boolean => {
      // Another process may have removed it in this moment.
      const stat = statSync(join(folder, name), { throwIfNoEntry: false });
      return stat !== undefined && this.#options.now() - stat.mtimeMs > KEPT_MS;
    };
    const numbers = numbersIn(folder);
    const newest = numbers.pop();
    const next = (i: number): string => String(numbers[i + 1] ?? newest);
    const kept = numbers.findIndex((_, i) => !isOld(next(i)));
    const old = kept < 0 ? numbers : numbers.slice(0, kept);
    const left = readdirSync(folder).filter((name) => name.startsWith(".") && isOld(name));
    for (const name of [...old, ...left]) rmSync(join(folder, String(name)), { force: true });
  }

  #folderOf(origin: string): string {
    return join(this.#options.folder, nameOf(origin));
  }
}

function numbersIn(folder: string): number[] {
  const names = readdirSync(folder).filter((name) => NUMBER.test(name));
  return names.map(Number).sort((a, b) => a - b);
}

/** False where the name is taken. */
function link(staged: string, path: string): boolean {
  try {
    linkSync(staged, path);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}

/** Files that are there after the power went: content, then name, each synced before the next. */
import {
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { encodeUtf8 } from "../core/text.ts";
import { errnoOf, writeFailure } from "./failure.ts";

const OWNER_ONLY = 0o600;

/**
 * Puts `text` at `path`, in place of what was there, readable by the owner alone. A crash leaves the
 * old content or the new, never a part.
 * @throws AgentError `no-space`
 */
export function replaceFile(path: string, text: string): void {
  const temporary = writeTemporary(path, text);
  renameSync(temporary, path);
  syncFolder(dirname(path));
}

/**
 * As `replaceFile`, but never over a file that is there. False when there is one.
 * @throws AgentError `no-space`
 */
export function createFile(path: string, text: string): boolean {
  const temporary = writeTemporary(path, text);
  try {
    linkSync(temporary, path); // unlike rename, link refuses a name that is taken
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(temporary);
  }
  syncFolder(dirname(path));
  return true;
}

/** Makes the names in a folder durable; a file's own sync does not. */
export function syncFolder(folder: string): void {
  const fd = openSync(folder, constants.O_RDONLY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Writes all of the bytes: the kernel may take a part, as it does at the brink of a full disk. */
export function writeFully(fd: number, bytes: Uint8Array, position: number): void {
  let written = 0;
  while (written < bytes.length) {
    written += writeSync(fd, bytes, written, bytes.length - written, position + written);
  }
}

function writeTemporary(path: string, text: string): string {
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    const fd = openSync(temporary, "w", OWNER_ONLY);
    try {
      writeFully(fd, encodeUtf8(text), 0);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  } catch (cause) {
    rmSync(temporary, { force: true });
    throw writeFailure(path, cause);
  }
  return temporary;
}

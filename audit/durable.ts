/** Files that are whole or not there, also on a host that fails. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { CannotLook } from "./finding.ts";

/** Over what may be there. Throws `CannotLook` when it cannot be written. */
export function writeText(path: string, text: string): void {
  const staged = `${path}.${process.pid}.new`;
  try {
    writeFileSync(staged, text, { flush: true });
    renameSync(staged, path);
    syncFolder(dirname(path));
  } catch (error) {
    remove(staged);
    throw new CannotLook(`${path} cannot be written`, { cause: error });
  }
}

/**
 * Makes it, and those above it, where there is none. Node's own way never ends where a folder that is there takes
 * none (/proc). Throws `CannotLook` when it cannot be made.
 */
export function makeFolders(path: string): void {
  if (existsSync(path)) return;
  if (dirname(path) !== path) makeFolders(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    // Another may have made it meanwhile.
    if (!existsSync(path)) throw new CannotLook(`${path} cannot be written`, { cause: error });
  }
}

/** If it can be: what could not be written may have a name that no call takes. */
function remove(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // The failure that led here is the one to tell.
  }
}

/** Else a host that fails may forget a name that was given, or taken away. */
export function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

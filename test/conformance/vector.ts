/** How a published vector fares, and how the folder that holds them is read. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * `failed` is a finding. `left` is a vector that is known and not judged: `detail` says why, or which
 * issue it belongs to. Only `passed` counts as passed.
 */
export interface Vector {
  name: string;
  outcome: "passed" | "failed" | "left";
  detail?: string;
}

/** A vector that holds; otherwise what was found instead. */
export function vector(name: string, holds: boolean, detail = "another result"): Vector {
  return holds ? { name, outcome: "passed" } : { name, outcome: "failed", detail };
}

export function left(name: string, detail: string): Vector {
  return { name, outcome: "left", detail };
}

export function readBytes(folder: string, path: string): Uint8Array {
  return new Uint8Array(readFileSync(join(folder, path)));
}

export function readText(folder: string, path: string): string {
  return readFileSync(join(folder, path), "utf8");
}

/** The shape is the published file's: a vector that lacks a member fails, or throws. */
export function readJson<T>(folder: string, path: string): T {
  const value: T = JSON.parse(readText(folder, path));
  return value;
}

/** The command line in this process, and folders for it. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { run } from "../../audit/command/program.ts";
import type { Files } from "./archive.ts";
import { LOG_ID } from "./log.ts";

export interface Ended {
  exit: number;
  out: string;
  err: string;
}

export async function command(...args: string[]): Promise<Ended> {
  const said = { out: "", err: "" };
  const write = (name: "out" | "err") => (text: string) => {
    said[name] += text;
  };
  const exit = await run(args, { out: write("out"), err: write("err"), progress: false });
  return { exit, ...said };
}

export interface Home {
  folder: string;
  remove(): void;
}

/** A folder of its own below the system's for temporary files. */
export function openHome(): Home {
  const folder = mkdtempSync(join(tmpdir(), "audit-"));
  return { folder, remove: () => rmSync(folder, { recursive: true }) };
}

/** Writes an archive's files below a folder. */
export function store(folder: string, files: Files, id = LOG_ID): void {
  for (const [path, bytes] of files) {
    mkdirSync(dirname(join(folder, id, path)), { recursive: true });
    writeFileSync(join(folder, id, path), bytes);
  }
}

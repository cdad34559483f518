/**
 * An export into a folder: `<file>.part` while it comes, which whoever asks again goes on with, and its name when
 * it is whole. Its manifest and note get theirs right before it: until then what was there before can be checked.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join, parse, relative, resolve } from "node:path";
import type { Manifest } from "../core/export/manifest.ts";
import type { ShownExport } from "../flow/export/read.ts";
import { errorCode, makeFolders } from "../store/durable-files.ts";
import type { Api } from "./api.ts";
import { assertSameLog, assertWhole, describe, download, exportPath } from "./download.ts";
import { CommandError } from "./failure.ts";
import type { Progress } from "./progress.ts";

/** Where a folder is, and what was asked for there. */
export interface Place {
  out: string;
  asked: Readonly<Record<string, unknown>>;
}

type Mark = Pick<ShownExport, "log" | "id">;

/** What was asked for here in the same words, and is not here yet. One that was cut is none. */
export async function readMark(place: Place): Promise<Mark | undefined> {
  const text = (await readFile(markOf(place), "utf8").catch(unlessMissing)) ?? "";
  const [, log, id] = /^([0-9a-f]{32}) ([0-9a-f]{32})\n$/.exec(text) ?? [];
  return log === undefined || id === undefined ? undefined : { log, id };
}

/** Makes the folder where there is none. @throws CommandError `unwritable` */
export async function writeMark(place: Place, { log, id }: Mark): Promise<void> {
  const folder = resolve(place.out);
  const { root } = parse(folder);
  try {
    await makeFolders(root, relative(root, folder));
    await writeFile(markOf(place), `${log} ${id}\n`);
  } catch (error) {
    throw new CommandError("unwritable", `${place.out}: ${errorCode(error)}`, { cause: error });
  }
}

function markOf({ out, asked }: Place): string {
  const words = createHash("sha256").update(JSON.stringify(asked)).digest("hex").slice(0, 16);
  return join(out, `.export-${words}`);
}

/** @throws CommandError `not-whole`: what came is away again; `unwritable` over a file of another log */
export async function intoFolder(
  api: Api,
  made: ShownExport,
  place: Place,
  progress: Progress,
): Promise<ShownExport> {
  const { json, manifest, note } = await describe(api, exportPath(made));
  const path = join(place.out, made.file);
  const part = `${path}.part`;
  assertSameLog((await readFile(`${path}.manifest.json`, "utf8").catch(unlessMissing)) ?? "", made);
  await fetchRest(api, made, { manifest, part }, progress);
  try {
    assertWhole(await hashOf(part), manifest);
  } catch (error) {
    await rm(part);
    throw error;
  }
  for (const [name, text] of [
    [`${path}.manifest.json`, json],
    [`${path}.manifest.note`, note],
  ] as const) {
    await writeFile(`${name}.part`, text);
    await rename(`${name}.part`, name);
  }
  await rename(part, path);
  await rm(markOf(place), { force: true });
  return made;
}

async function fetchRest(
  api: Api,
  made: ShownExport,
  { manifest, part }: { manifest: Manifest; part: string },
  progress: Progress,
): Promise<void> {
  const size = Number(manifest.bytes);
  const there = (await stat(part).catch(unlessMissing))?.size ?? 0;
  let at = there > size ? 0 : there;
  const file = await open(part, at === 0 ? "w" : "a");
  try {
    for await (const chunk of download(api, exportPath(made), manifest, at)) {
      await file.writeFile(chunk);
      at += chunk.length;
      progress.update("fetching", Math.floor(at / 1024), Math.ceil(size / 1024));
    }
    await file.sync();
  } finally {
    await file.close();
  }
}

async function hashOf(path: string): Promise<string> {
  const digest = createHash("sha256");
  for await (const chunk of createReadStream(path)) digest.update(chunk);
  return digest.digest("base64");
}

function unlessMissing(error: unknown): undefined {
  if (errorCode(error) !== "ENOENT") throw error;
  return undefined;
}

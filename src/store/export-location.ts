/** What EXPORT_URL, or the target of a delivery, names. */
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { ExportFiles } from "./export-files.ts";
import { folderExports } from "./export-files-folder.ts";
import { parseUnlockedS3Url } from "./s3-location.ts";

const SCHEME = /^[a-z][a-z0-9+.-]+:/i;
/** No name of a log: beside those of an archive it is in nobody's way. */
const FOLDER = "exports";
const LOCK = ["lock", "lock_days"];

/**
 * A folder, as `file:///…` or as a plain path, or a bucket, as `s3://bucket/prefix?…`.
 *
 * @throws Error as `assertExportLocation`
 */
export async function openExports(location: string): Promise<ExportFiles> {
  if (!location.startsWith("s3:")) return folderExports(folderOf(location));
  // On demand: the client costs a start as much as all the rest of the service.
  const { s3Exports } = await import("./export-files-s3.ts");
  return s3Exports(location);
}

/** By its words alone. @throws Error on another kind of URL, or a parameter that is wrong */
export function assertExportLocation(location: string): void {
  if (location.startsWith("s3:")) parseUnlockedS3Url(location);
  else folderOf(location);
}

function folderOf(location: string): string {
  if (location.startsWith("file:")) return fileURLToPath(location);
  if (SCHEME.test(location)) throw new Error("exports: neither a folder nor an S3 bucket");
  return resolve(location);
}

/** Inside an archive. Its files may be locked; exports are removed again, and are not. */
export function exportsIn(archive: string): string {
  if (!/^(?:file|s3):/.test(archive)) return join(archive, FOLDER);
  const url = new URL(archive);
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/${FOLDER}`;
  for (const name of LOCK) url.searchParams.delete(name);
  return url.href;
}

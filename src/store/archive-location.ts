/** What ARCHIVE_URL names. */
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Archive } from "./archive.ts";
import { folderArchive } from "./archive-folder.ts";

const SCHEME = /^[a-z][a-z0-9+.-]+:/i;

/**
 * Opens a folder, as `file:///…` or as a plain path, or a bucket, as `s3://bucket/prefix?…`
 * (archive-s3.ts). A bucket that can be reached is tried first: one that replaces files is no archive.
 *
 * @throws Error on another kind of URL, a parameter that is wrong, or such a bucket
 */
export async function openArchive(location: string): Promise<Archive> {
  if (location.startsWith("file:")) return folderArchive(fileURLToPath(location));
  if (location.startsWith("s3:")) {
    // On demand: the client costs a start as much as all the rest of the service.
    const { openS3Archive } = await import("./archive-s3.ts");
    return await openS3Archive(location);
  }
  if (SCHEME.test(location)) throw new Error("archive: neither a folder nor an S3 bucket");
  return folderArchive(resolve(location));
}

/** Archives of both kinds, empty, and gone with the test. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import type { Archive } from "../../src/store/archive.ts";
import { folderArchive } from "../../src/store/archive-folder.ts";
import { openS3Archive } from "../../src/store/archive-s3.ts";
import type { S3Patience } from "../../src/store/s3-objects.ts";
import { archived, archiveFolder } from "../flow/folder.ts";
import { type S3Server, startS3 } from "../s3.ts";

/** One store, which several processes would open each for itself. */
export interface Place {
  open(): Promise<Archive>;
  /** A file that nobody of ours wrote. */
  stray(path: string): Promise<void>;
  /** Path to content, in base64, of all that is archived. */
  files(): Promise<Map<string, string>>;
}

/** Requests are counted by tests: none is to be one more because a busy machine was late with an answer. */
export const PATIENCE: S3Patience = {
  attempts: 4,
  attemptMs: 20_000,
  pauseMs: 1,
  totalMs: 60_000,
};
/** For a store that says nothing. */
export const IMPATIENCE: S3Patience = { ...PATIENCE, attemptMs: 300 };

export async function folderPlace(): Promise<Place & { root: string }> {
  const root = await archiveFolder();
  return {
    root,
    open: async () => folderArchive(root),
    stray: async (path) => {
      await mkdir(join(root, dirname(path)), { recursive: true });
      await writeFile(join(root, path), "stray");
    },
    files: () => archived(root),
  };
}

export async function s3Place(
  options: Parameters<typeof startS3>[0] = {},
): Promise<Place & { server: S3Server }> {
  const server = await startS3({ pageSize: 3, ...options });
  onTestFinished(() => server.close());
  const prefix = "some/prefix/";
  return {
    server,
    open: () => openS3Archive(server.url.replace("?", `/${prefix}?`), PATIENCE),
    stray: async (path) => {
      server.objects.set(`${prefix}${path}`, { bytes: Buffer.from("stray"), checksum: "" });
    },
    files: async () =>
      new Map(
        Array.from(server.objects, ([key, { bytes }]) => [
          key.slice(prefix.length),
          bytes.toString("base64"),
        ]),
      ),
  };
}

export const PLACES: [string, () => Promise<Place>][] = [
  ["in a folder", folderPlace],
  ["in a bucket", s3Place],
];

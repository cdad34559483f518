/** An export into a bucket: streamed through, and there when all of it was as the manifest says. */
import { hashed, whole } from "../flow/export/hashed.ts";
import type { ShownExport } from "../flow/export/read.ts";
import { type ExportFiles, ExportFilesError } from "../store/export-files.ts";
import { openExports } from "../store/export-location.ts";
import type { Api } from "./api.ts";
import { assertSameLog, assertWhole, describe, download, exportPath } from "./download.ts";
import { CommandError } from "./failure.ts";
import type { Progress } from "./progress.ts";

/** @throws CommandError `not-whole`, `unwritable`, `invalid-usage` for a place that is none */
export async function intoBucket(
  api: Api,
  made: ShownExport,
  out: string,
  progress: Progress,
): Promise<ShownExport> {
  const { json, manifest, note } = await describe(api, exportPath(made));
  const files = await openExports(out).catch((error: unknown) => {
    throw new CommandError("invalid-usage", error instanceof Error ? error.message : "", {
      cause: error,
    });
  });
  assertSameLog(await manifestAt(files, `${made.file}.manifest.json`), made);
  try {
    // Its note as the last: until the file is whole, what was there before can be checked.
    const fetched = shown(download(api, exportPath(made), manifest), Number(manifest.bytes));
    const checked = hashed(fetched, (sha256) => assertWhole(sha256, manifest));
    await files.write(made.file, checked);
    await files.write(`${made.file}.manifest.json`, whole(json));
    await files.write(`${made.file}.manifest.note`, whole(note));
  } catch (error) {
    if (!(error instanceof ExportFilesError)) throw error;
    throw new CommandError("unwritable", `${error.message}: ${out}`, { cause: error });
  }
  return made;

  async function* shown(chunks: AsyncIterable<Uint8Array>, size: number) {
    let bytes = 0;
    for await (const chunk of chunks) {
      bytes += chunk.length;
      progress.update("fetching", Math.floor(bytes / 1024), Math.ceil(size / 1024));
      yield chunk;
    }
  }
}

/** Empty where there is none, or where this cannot be asked: some may write to a bucket and read nothing of it. */
async function manifestAt(files: ExportFiles, path: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  try {
    const to = (await files.size(path)) ?? 0;
    for await (const chunk of files.read(path, { from: 0, to })) chunks.push(chunk);
  } catch (error) {
    if (!(error instanceof ExportFilesError)) throw error;
    return "";
  }
  return Buffer.concat(chunks).toString();
}

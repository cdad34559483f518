/** An export into a bucket: streamed through, and there when all of it was as the manifest says. */
import { createHash } from "node:crypto";
import { encodeUtf8 } from "../core/text.ts";
import type { ShownExport } from "../flow/export/read.ts";
import { ExportFilesError } from "../store/export-files.ts";
import { openExports } from "../store/export-location.ts";
import type { Api } from "./api.ts";
import { assertWhole, type Described, describe, download, exportPath } from "./download.ts";
import { CommandError } from "./failure.ts";
import type { Progress } from "./progress.ts";

/** @throws CommandError `not-whole`, `unwritable`, `invalid-usage` for a place that is none */
export async function intoBucket(
  api: Api,
  made: ShownExport,
  out: string,
  progress: Progress,
): Promise<ShownExport> {
  const described = await describe(api, exportPath(made));
  const files = await openExports(out).catch((error: unknown) => {
    throw new CommandError("invalid-usage", error instanceof Error ? error.message : "", {
      cause: error,
    });
  });
  try {
    // Its note as the last: until the file is whole, what was there before can be checked.
    await files.write(made.file, checked(api, made, described, progress));
    await files.write(`${made.file}.manifest.json`, whole(described.json));
    await files.write(`${made.file}.manifest.note`, whole(described.note));
  } catch (error) {
    if (!(error instanceof ExportFilesError)) throw error;
    throw new CommandError("unwritable", `${error.message}: ${out}`, { cause: error });
  }
  return made;
}

/** What throws at its end is never joined to an object. */
async function* checked(
  api: Api,
  made: ShownExport,
  { manifest }: Described,
  progress: Progress,
): AsyncGenerator<Uint8Array> {
  const digest = createHash("sha256");
  let bytes = 0;
  for await (const chunk of download(api, exportPath(made), manifest)) {
    digest.update(chunk);
    bytes += chunk.length;
    progress.update("fetching", Math.floor(bytes / 1024), Math.ceil(Number(manifest.bytes) / 1024));
    yield chunk;
  }
  assertWhole(digest.digest("base64"), manifest);
}

async function* whole(text: string): AsyncGenerator<Uint8Array> {
  yield encodeUtf8(text);
}

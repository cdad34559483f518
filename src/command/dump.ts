/** Entries written out as they stand, one a line: canonical JSON has no line breaks. */
import { type FileHandle, open } from "node:fs/promises";
import { CommandError } from "./failure.ts";

export interface Dump {
  path: string;
  /** Resolves to how many there were, when they are on disk. */
  add(entries: AsyncIterable<Uint8Array>): Promise<number>;
  close(): Promise<void>;
}

/** The file is made when there is something for it, and only if there is none yet. */
export function openDump(path: string): Dump {
  let file: FileHandle | undefined;
  return {
    path,
    add: async (entries) => {
      file ??= await created(path);
      let count = 0;
      for await (const bytes of entries) {
        await file.writeFile(bytes);
        await file.writeFile("\n");
        count += 1;
      }
      await file.sync();
      return count;
    },
    close: async () => {
      await file?.close();
    },
  };
}

async function created(path: string): Promise<FileHandle> {
  try {
    return await open(path, "wx", 0o600);
  } catch (error) {
    throw new CommandError("unreadable-file", `${path}: cannot be made, or is there already`, {
      cause: error,
    });
  }
}

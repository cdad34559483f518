/** The checkpoint that a copy is made by, or a range of entries is held to. */
import type { Verify } from "../../src/core/ed25519.ts";
import type { Vkey } from "../../src/core/note.ts";
import { type OpenedCheckpoint, openCheckpoint } from "../archive/checkpoints.ts";
import { CheckpointSizes } from "../archive/sizes.ts";
import { CannotLook } from "../finding.ts";
import type { Source } from "../source.ts";
import type { OpenPiles } from "../tally/piles.ts";
import { NotProven } from "./proven.ts";

export interface NewestOptions {
  vkeys: readonly Vkey[];
  verify: Verify;
  openPiles: OpenPiles;
}

/**
 * The largest checkpoint, which must be good. Undefined where there is none at all.
 *
 * @throws CannotLook where no trusted key has signed it, NotProven where it is bad
 */
export async function newest(
  source: Source,
  { openPiles, verify, vkeys }: NewestOptions,
): Promise<OpenedCheckpoint | undefined> {
  const sizes = new CheckpointSizes(openPiles);
  await sizes.load(source);
  for (const size of sizes.descending()) {
    const path = `checkpoint/${size}`;
    const file = await source.read(path);
    if (file === undefined) continue; // it was there a moment ago
    const opened = openCheckpoint(file, { vkeys, verify });
    if (opened === "checkpoint-untrusted") {
      throw new CannotLook(`${path} has no signature by a given key: was the log's key changed?`);
    }
    if (typeof opened === "object" && opened.size === size) return opened;
    const code = typeof opened === "string" ? opened : "checkpoint-size";
    throw new NotProven(code, path, `checkpoint of size ${size}`);
  }
  return undefined;
}

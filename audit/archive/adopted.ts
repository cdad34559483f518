/** What entries say was sealed before another archive stood in for a lost one. */
import type { Checkpoint } from "../../src/core/checkpoint.ts";
import type { EntryOf } from "../../src/core/entry.ts";
import type { Sha256 } from "../../src/core/hash.ts";
import { decodeBase64, equal } from "../../src/core/text.ts";
import { NotProven, Proven } from "../fetch/proven.ts";
import type { Findings } from "../finding.ts";
import type { Source } from "../source.ts";

/**
 * Compares each adoption's root with that of the tree, once the walk has held every tile to its entries.
 * The tiles are read again, and so proven again: what is shown now could be another tree's.
 */
export async function compareAdopted(
  source: Source,
  checkpoint: Checkpoint,
  { adoptions, hash }: { adoptions: readonly EntryOf<"archive_adopted">[]; hash: Sha256 },
  findings: Findings,
): Promise<void> {
  if (adoptions.length === 0) return;
  try {
    const proven = await Proven.open({ sources: [source], checkpoint, hash });
    for (const { body, index } of adoptions) {
      const sealed = BigInt(body.size);
      const root = decodeBase64(body.root);
      if (root && sealed <= index && equal(root, await proven.root(sealed))) continue;
      const detail = `size ${sealed}, and a root that is not the tree's`;
      findings.add("archive-adopted", { index }, detail);
    }
  } catch (error) {
    if (!(error instanceof NotProven)) throw error;
    const { code, message, path } = error;
    // Where the walk was shown the same, it has said so.
    if (findings.count === 0) findings.add(code, { path }, message);
  }
}

/** What entries say of the tree's own roots: what was sealed when an archive was lost, or a month closed. */
import type { Checkpoint } from "../../src/core/checkpoint.ts";
import type { Sha256 } from "../../src/core/hash.ts";
import { decodeBase64, equal } from "../../src/core/text.ts";
import { NotProven, Proven } from "../fetch/proven.ts";
import type { FindingCode, Findings } from "../finding.ts";
import type { Source } from "../source.ts";

/** An entry that names a root, and the finding that it is not the tree's. */
export interface SaidRoot {
  index: bigint;
  /** Of the tree before the entry. */
  size: string;
  root: string;
  code: FindingCode & ("archive-adopted" | "month-root");
}

/**
 * Compares each root with that of the tree, once the walk has held every tile to its entries.
 * The tiles are read again, and so proven again: what is shown now could be another tree's.
 */
export async function compareSaid(
  source: Source,
  checkpoint: Checkpoint,
  { roots, hash }: { roots: readonly SaidRoot[]; hash: Sha256 },
  findings: Findings,
): Promise<void> {
  if (roots.length === 0) return;
  try {
    const proven = await Proven.open({ sources: [source], checkpoint, hash });
    for (const { code, index, root: text, size } of roots) {
      const sealed = BigInt(size);
      const root = decodeBase64(text);
      if (root && sealed <= index && equal(root, await proven.root(sealed))) continue;
      const detail = `size ${sealed}, and a root that is not the tree's`;
      findings.add(code, { index }, detail);
    }
  } catch (error) {
    if (!(error instanceof NotProven)) throw error;
    const { code, message, path } = error;
    // Where the walk was shown the same, it has said so.
    if (findings.count === 0) findings.add(code, { path }, message);
  }
}

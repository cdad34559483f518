/** What entries say was sealed before another archive stood in for a lost one. */
import type { EntryOf } from "../../src/core/entry.ts";
import type { Sha256 } from "../../src/core/hash.ts";
import { rootNodes, treeRoot } from "../../src/core/proof.ts";
import { decodeBase64, equal } from "../../src/core/text.ts";
import { tileNodes, tilePath, tilesOf } from "../../src/core/tile.ts";
import type { Findings } from "../finding.ts";
import type { Source } from "../source.ts";

/**
 * Compares each adoption's root with that of the tree, once the walk has held every tile of a log of
 * `size` entries to its entries. Where a tile is missing, or cut, that was said then.
 */
export async function compareAdopted(
  source: Source,
  size: bigint,
  { adoptions, hash }: { adoptions: readonly EntryOf<"archive_adopted">[]; hash: Sha256 },
  findings: Findings,
): Promise<void> {
  for (const { body, index } of adoptions) {
    const sealed = BigInt(body.size);
    const root = sealed <= index ? await rootAt(source, sealed, size, hash) : "too-large";
    if (root === "tiles-missing") continue;
    if (root !== "too-large" && equal(root, decodeBase64(body.root) ?? new Uint8Array())) continue;
    findings.add("archive-adopted", { index }, `size ${sealed}, and a root that is not the tree's`);
  }
}

async function rootAt(
  source: Source,
  sealed: bigint,
  size: bigint,
  hash: Sha256,
): Promise<Uint8Array | "tiles-missing"> {
  const tiles = await Promise.all(
    tilesOf(rootNodes(sealed), size).map(async (name) => {
      const { level, index, width } = name;
      const bytes =
        (await source.read(tilePath(level, index, width))) ??
        (await source.read(tilePath(level, index)));
      const whole = bytes !== undefined && bytes.length % 32 === 0 && bytes.length >= width * 32;
      return whole ? { ...name, bytes } : undefined;
    }),
  );
  const whole = tiles.filter((tile) => tile !== undefined);
  if (whole.length < tiles.length) return "tiles-missing";
  return treeRoot(sealed, tileNodes(whole, hash), hash);
}

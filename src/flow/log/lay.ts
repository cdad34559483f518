/** Bundles and tiles of everything new, laid down in the archive before anything is signed. */
import { encodeBundle } from "../../core/bundle.ts";
import type { Sha256 } from "../../core/hash.ts";
import { bundlePath, partialTiles, TILE_WIDTH, type Tile, tilePath } from "../../core/tile.ts";
import type { Archive } from "../../store/archive.ts";
import type { Transaction } from "../../store/connect.ts";
import type { NewFile } from "../../store/durable-files.ts";
import type { Seal } from "../../store/seals.ts";
import { extend } from "./extend.ts";

/**
 * The seal over `size` entries. When this resolves its files are durable: the full ones went as they
 * filled, the partial ones last.
 *
 * @throws Problem `log-behind` for an entry that is missing or altered; ArchiveError
 */
export async function lay(
  tx: Transaction,
  { archive, hash, log }: { archive: Archive; hash?: Sha256 | undefined; log: string },
  from: Seal,
  size: bigint,
): Promise<Seal> {
  let to = from;
  let files: NewFile[] = [];
  let open: Uint8Array[] = [];
  let bundle = from.size / BigInt(TILE_WIDTH);
  for await (const page of extend(tx, log, from, size, hash)) {
    to = { size: page.size, leaf: page.leaf, edge: page.edge };
    open = [...open, ...page.entries];
    for (; open.length >= TILE_WIDTH; open = open.slice(TILE_WIDTH), bundle += 1n) {
      files.push(bundleFile(log, bundle, open.slice(0, TILE_WIDTH)));
    }
    files.push(...page.full.map((tile) => tileFile(log, tile)));
    if (page.size === size) break;
    await archive.put(files);
    files = [];
  }
  if (open.length > 0) files.push(bundleFile(log, bundle, open));
  files.push(...partialTiles(to.edge).map((tile) => tileFile(log, tile)));
  await archive.put(files);
  return to;
}

function bundleFile(log: string, index: bigint, entries: readonly Uint8Array[]): NewFile {
  return { path: `${log}/${bundlePath(index, entries.length)}`, bytes: encodeBundle(entries) };
}

function tileFile(log: string, { level, index, width, bytes }: Tile): NewFile {
  return { path: `${log}/${tilePath(level, index, width)}`, bytes };
}

/** A log as its readers fetch it (C2SP tlog-tiles): no more than the published checkpoint implies. */
import { decodeBundle, encodeBundle } from "../../core/bundle.ts";
import { Problem } from "../../core/problem.ts";
import { bundlePath, isImplied, TILE_WIDTH, type TilePath, tilePath } from "../../core/tile.ts";
import { listCheckpoints } from "../../store/checkpoints.ts";
import type { Sql } from "../../store/connect.ts";
import { checkpointAt, type Proofs, readArchived } from "./prove.ts";
import type { Visibility } from "./visibility.ts";

const HASH_BYTES = 32;

export interface Serving extends Proofs {
  /** As reader. */
  sql: Sql;
  visibility: Visibility;
}

/**
 * The bytes of a tile or bundle as the archive holds them. What the published checkpoint implies is
 * always served; partial ones of earlier checkpoints as long as they are there.
 *
 * @param path of `tile`, relative to the log
 * @throws Problem `beyond-checkpoint`; `invalid-tile` for a width that no checkpoint had; `not-found`
 *   for a partial tile that may have gone because the full one is there, and for a log without a
 *   checkpoint; `archive-unavailable`
 */
export async function serveTile(
  serving: Serving,
  log: string,
  { path, tile }: { path: string; tile: TilePath },
): Promise<Uint8Array> {
  const { size } = await checkpointAt(serving, log);
  if (endOf(tile, tile.width) > size) throw new Problem("beyond-checkpoint");
  const bytes = await readArchived(serving.archive, `${log}/${path}`);
  if (bytes !== undefined) return bytes;
  if (!isImplied(tile, size)) {
    throw new Problem(endOf(tile, TILE_WIDTH) > size ? "invalid-tile" : "not-found");
  }
  // Witnesses may be so late that the published checkpoint's partial tile went when the full one came,
  // which nobody may be shown yet.
  const full = await readArchived(serving.archive, `${log}/${fullPath(tile)}`);
  if (full === undefined) throw new Error(`serve: ${path} of ${log} is not in the archive`);
  return beginning(full, tile);
}

function fullPath(tile: TilePath): string {
  return tile.kind === "entries" ? bundlePath(tile.index) : tilePath(tile.level, tile.index);
}

/** The first hashes or entries of a full tile or bundle. */
function beginning(full: Uint8Array, { kind, width }: TilePath): Uint8Array {
  if (kind === "tile") return full.subarray(0, width * HASH_BYTES);
  const entries = decodeBundle(full)?.slice(0, width) ?? [];
  if (entries.length < width) throw new Error("serve: an archived bundle is cut short");
  return encodeBundle(entries);
}

/** Sizes of the checkpoints that are kept, ascending and none above the published one. */
export async function serveSizes(
  serving: Serving,
  log: string,
  { after = 0n, limit }: { after?: bigint | undefined; limit: number },
): Promise<{ sizes: bigint[]; next?: bigint }> {
  const { size: upTo } = await checkpointAt(serving, log);
  const sizes = await listCheckpoints(serving.sql, log, { after, upTo, limit });
  const next = sizes.at(-1);
  return next === undefined || sizes.length < limit ? { sizes } : { sizes, next };
}

/** How many entries a log has at least that has the first `width` hashes, or entries, of this tile. */
function endOf(tile: TilePath, width: number): bigint {
  const level = tile.kind === "entries" ? 0 : tile.level;
  const full = BigInt(TILE_WIDTH);
  return (tile.index * full + BigInt(width)) * full ** BigInt(level);
}

/** Files past the largest checkpoint: a seal cut short leaves some, and so does somebody's hand. */
import { bundlePath, TILE_WIDTH, tilePath } from "../../src/core/tile.ts";
import type { Findings } from "../finding.ts";
import type { Source } from "../source.ts";

interface Place {
  /** −1 for bundles. */
  level: number;
  index: bigint;
  width: number;
}

const PATH = /^tile\/(entries|[0-9]{1,2})((?:\/x[0-9]{3})*\/[0-9]{3})(?:\.p\/([0-9]{1,3}))?$/;
const LEVEL_MAX = 63;

/**
 * How many entries the bundles hold past `size`: they are covered by no checkpoint. What follows no
 * full bundle or tile is a finding: no log writes it.
 */
export async function surplus(source: Source, size: bigint, findings: Findings): Promise<bigint> {
  let end = size;
  for await (const path of source.list("tile")) {
    const place = placeOf(path);
    if (place === undefined) continue; // a file that a killed sealer left behind
    const start = place.index << (8n * BigInt(Math.max(place.level, 0) + 1));
    const above = place.level > 0 ? 1n << (8n * BigInt(place.level)) : 1n;
    if (start + above > size && !(await follows(source, place))) {
      const code = place.level < 0 ? "bundle-extra" : "tile-extra";
      findings.add(code, { path }, "nothing full stands before it");
      continue;
    }
    const last = start + BigInt(place.width);
    if (place.level < 0 && last > end) end = last;
  }
  return end - size;
}

/** A tile is begun when the one before is full; a level, when the first tile below is. */
async function follows(source: Source, { level, index }: Place): Promise<boolean> {
  if (index > 0n) {
    const before = index - 1n;
    const path = level < 0 ? bundlePath(before) : tilePath(level, before);
    return (await source.read(path)) !== undefined;
  }
  return level <= 0 || (await source.read(tilePath(level - 1, 0n))) !== undefined;
}

/** The inverse of `tilePath` and `bundlePath`; undefined for all that these do not write. */
export function placeOf(path: string): Place | undefined {
  const [, name = "", digits = "", partial] = PATH.exec(path) ?? [];
  const level = name === "entries" ? -1 : Number(name);
  if (name === "" || level > LEVEL_MAX) return undefined;
  const index = BigInt(digits.replace(/[/x]/g, ""));
  const width = partial === undefined ? TILE_WIDTH : Number(partial);
  if (width < 1 || width > TILE_WIDTH) return undefined;
  const written = level < 0 ? bundlePath(index, width) : tilePath(level, index, width);
  return written === path ? { level, index, width } : undefined;
}

/** Files that no checkpoint accounts for: a seal cut short leaves some, and so does somebody's hand. */
import { bundlePath, TILE_WIDTH, tilePath } from "../../src/core/tile.ts";
import type { Findings } from "../finding.ts";
import type { Source } from "../source.ts";
import { sizeOf } from "./sizes.ts";

interface Place {
  /** −1 for bundles. */
  level: number;
  index: bigint;
  width: number;
}

const PATH = /^tile\/(entries|[0-9]{1,2})((?:\/x[0-9]{3})*\/[0-9]{3})(?:\.p\/([0-9]{1,3}))?$/;
/** What witnesses signed, and what a sealer was about to sign: the tree is whole without them. */
const BESIDE =
  /^(?:claim\/(?:0|[1-9][0-9]{0,18})|cosignature\/(?:0|[1-9][0-9]{0,18})\/[0-9a-f]{8})$/;
const LEVEL_MAX = 63;

const STRANGERS_LISTED_MAX = 10;

export interface Surplus {
  /** Entries that bundles and tiles hold past the largest checkpoint, which covers them not. */
  uncovered: bigint;
  /** Files under names that no log writes: nobody looks into them. */
  strangers: { count: number; listed: string[] };
}

/** What follows no full bundle or tile, past `size` entries, is a finding: no log writes it. */
export async function surplus(source: Source, size: bigint, findings: Findings): Promise<Surplus> {
  const strangers: Surplus["strangers"] = { count: 0, listed: [] };
  let end = size;
  for await (const path of source.list("")) {
    const place = placeOf(path);
    if (place === undefined) {
      if (sizeOf(path) !== undefined || BESIDE.test(path)) continue;
      strangers.count += 1;
      if (strangers.listed.length < STRANGERS_LISTED_MAX) strangers.listed.push(path);
      continue;
    }
    const level = BigInt(Math.max(place.level, 0));
    const start = place.index << (8n * (level + 1n));
    const above = 1n << (8n * level);
    if (start + above > size && !(await follows(source, place))) {
      const code = place.level < 0 ? "bundle-extra" : "tile-extra";
      findings.add(code, { path }, "nothing full stands before it");
      continue;
    }
    const last = start + (BigInt(place.width) << (8n * level));
    if (last > end) end = last;
  }
  return { uncovered: end - size, strangers };
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

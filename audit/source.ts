/** Where an audit reads from: a folder on disk, or the log's server over HTTP. */
import { TILE_WIDTH } from "../src/core/tile.ts";

/** One log's archive. Paths are C2SP tlog-tiles', as `tile/entries/000` or `checkpoint/17`. */
export interface Source {
  /**
   * The file, of one that is larger than `bytesMax` a byte more than that, and nothing of what is no
   * regular file: neither is of a form that holds. Undefined where there is none. Throws `CannotLook`
   * when it cannot be read.
   */
  read(path: string): Promise<Uint8Array | undefined>;
  /** Paths of all files below a folder of the log, `""` for all; in no order, none where nothing can be listed. */
  list(folder: string): AsyncIterable<string>;
  /** How many bundles to read ahead of the one that is judged; where none is said, none. */
  readonly ahead?: number;
  /** In sentences, what cannot be seen through it; complete when all was read. */
  readonly limits?: ReadonlySet<string>;
}

export const NOTE_BYTES_MAX = 65_536;
const TILE_BYTES_MAX = TILE_WIDTH * 32;
/** Two bytes of length, and an entry of as many bytes as they can say. */
const BUNDLE_BYTES_MAX = TILE_WIDTH * (2 + 65_535);

/** What a file of this path holds at most. */
export function bytesMax(path: string): number {
  if (path.startsWith("tile/entries/")) return BUNDLE_BYTES_MAX;
  return path.startsWith("tile/") ? TILE_BYTES_MAX : NOTE_BYTES_MAX;
}

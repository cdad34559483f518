/**
 * What all bodies that are being read may take together. It is taken as the bytes come, not as they
 * are promised, and given back by a deadline: whoever sends slowly keeps nobody else out.
 */
import { Problem } from "../core/problem.ts";

export interface Room {
  /** How long a body may take from its first byte. */
  readonly ms: number;
  /**
   * @param length the body's so far, with these bytes
   * @throws Problem `busy`
   */
  take(bytes: number, length: number): void;
  give(bytes: number): void;
}

const BYTES_MAX = 32 * 1024 * 1024;
/** Where bodies end that have grown past `SMALL_MAX`: what is above is for the small ones. */
const GROWN_MAX = 24 * 1024 * 1024;
/** Some fifty reports, or any statement of a key. */
const SMALL_MAX = 64 * 1024;
/** A full batch of 4 MiB at 3.4 Mbit/s. */
const MS_MAX = 10_000;

export function openRoom(
  limits: { bytes?: number; grown?: number; small?: number; ms?: number } = {},
): Room {
  const { bytes: bytesMax = BYTES_MAX, grown = GROWN_MAX, small = SMALL_MAX, ms = MS_MAX } = limits;
  let taken = 0;
  return {
    ms,
    take(bytes, length) {
      if (taken + bytes > (length > small ? grown : bytesMax)) throw new Problem("busy");
      taken += bytes;
    },
    give(bytes) {
      taken -= bytes;
    },
  };
}

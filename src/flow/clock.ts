/** Time and chance as parameters, so that tests hold both in their hands. */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** That many bytes from a cryptographic source. */
export type Random = (bytes: number) => Uint8Array;

/** What addresses have shown, look after look. */
import { nameOf, type Sighting } from "./compare.ts";

/** Milliseconds since the epoch, of the first look that showed it and of the last. */
export interface Seen extends Sighting {
  since: number;
  at: number;
}

/** All that was seen, and what is shown now. */
export function merged(held: readonly Seen[], views: readonly Sighting[], now: number): Seen[] {
  const all = new Map(held.map((one) => [`${one.from} ${nameOf(one.checkpoint)}`, one]));
  for (const { checkpoint, from } of views) {
    const key = `${from} ${nameOf(checkpoint)}`;
    const before = all.get(key) ?? { from, checkpoint, since: now, at: now };
    all.set(key, { ...before, at: Math.max(before.at, now) });
  }
  return [...all.values()];
}

/**
 * What is in a larger tree that was seen goes, but for each address's largest: that is what it must not
 * go back behind. What no larger tree was compared with stays until one is.
 */
export function settled(held: readonly Seen[], covered: ReadonlySet<string>): Seen[] {
  const largest = new Map<string, bigint>();
  for (const { checkpoint, from } of held) {
    const size = largest.get(from) ?? -1n;
    largest.set(from, size > checkpoint.size ? size : checkpoint.size);
  }
  return held.filter(
    ({ checkpoint, from }) =>
      !covered.has(nameOf(checkpoint)) || checkpoint.size === largest.get(from),
  );
}

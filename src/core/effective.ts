/**
 * What is in force when. For each key the values stand in the order of their entries, and the newest
 * with `effective_from` ≤ t is in force at t (BYTES §4): a later entry may take back what an earlier
 * one had announced.
 */
import { epochMs, instantText } from "./unit.ts";

interface Effective {
  /** An `InstantText`: of one width, so that the order of texts is the order of time. */
  readonly effective_from: string;
}

/** Instants from `start` to before `end`. */
export interface Span {
  readonly start: string;
  readonly end: string;
}

export class InForce<V extends Effective> {
  readonly #histories = new Map<string, V[]>();

  /** The newest of its key. */
  add(key: string, value: V): void {
    const history = this.#histories.get(key);
    if (history === undefined) this.#histories.set(key, [value]);
    else history.push(value);
  }

  at(key: string, instant: string): V | undefined {
    return this.#histories.get(key)?.findLast((value) => value.effective_from <= instant);
  }

  /** Those that are in force at any instant from `start` to before `end`, newest entry first. */
  during(key: string, { start, end }: Span): V[] {
    let replaced = end;
    const found: V[] = [];
    for (const value of this.history(key).toReversed()) {
      const from = value.effective_from;
      if ((from > start ? from : start) < replaced) found.push(value);
      if (from < replaced) replaced = from;
    }
    return found;
  }

  /** Of every key, in the order in which they first came. */
  values(): V[] {
    return [...this.#histories.values()].flat();
  }

  /** All that was ever said of a key, oldest entry first. */
  history(key: string): readonly V[] {
    return this.#histories.get(key) ?? [];
  }
}

/** The next instant there is: what replaces something starts after its entry is written. */
export function justAfter(at: string): string {
  return instantText(epochMs(at) + 1);
}

/** The jobs of one namespace, with sums that are kept as jobs come and go: a command costs what it asks. */
import { byJob, type LiveJob } from "./live.ts";

/** `gone`: it never ran. Kept so that who heard it earlier does not bring it back, as only running longer does. */
export type Kept = Omit<LiveJob, "job" | "kind"> & { readonly kind: LiveJob["kind"] | "gone" };

/**
 * So many are kept, and no more: what is one namespace's must not hold up all others. A job beyond that is
 * answered by the figures and by those that are kept.
 */
export const JOBS_MAX = 20_000;
/** Beyond so many, what never ran is not kept of jobs that nobody has heard of: the rest is for those that run. */
export const UNHEARD_BELOW = 10_000;
/** So long it is kept that a job never ran: copies that heard it before have been asked by then. */
export const GONE_MS = 86_400_000;

/** Ends are whole steps from the epoch on, the next after `until`: then few of them differ, whatever was said. */
export const RESERVED_STEP_MS = 10_000;
export const STEP_MS = 3_600_000;

export class Jobs {
  readonly #kept = new Map<string, Kept>();
  readonly #byEnd = new Map<number, Set<string>>();
  #live = 0n;
  #held = 0n;

  get size(): number {
    return this.#kept.size;
  }

  /** The sum of all amounts. */
  get live(): bigint {
    return this.#live;
  }

  /** What starts are held to. */
  get held(): bigint {
    return this.#held;
  }

  get(job: string): Kept | undefined {
    return this.#kept.get(job);
  }

  keys(): IterableIterator<string> {
    return this.#kept.keys();
  }

  put(job: string, kept: Kept): void {
    this.delete(job);
    this.#kept.set(job, kept);
    const ending = this.#byEnd.get(kept.until);
    if (ending === undefined) this.#byEnd.set(kept.until, new Set([job]));
    else ending.add(job);
    this.#live += kept.amount;
    this.#held += weightOf(kept);
  }

  delete(job: string): void {
    const kept = this.#kept.get(job);
    if (kept === undefined) return;
    this.#kept.delete(job);
    const ending = this.#byEnd.get(kept.until);
    ending?.delete(job);
    if (ending?.size === 0) this.#byEnd.delete(kept.until);
    this.#live -= kept.amount;
    this.#held -= weightOf(kept);
  }

  /** Those that have ended by then are forgotten. */
  expire(now: number): void {
    for (const [end, jobs] of this.#byEnd) {
      if (end <= now) for (const job of jobs) this.delete(job);
    }
  }

  /** Epoch milliseconds of the last end; undefined: nothing is kept. */
  lastEnd(): number | undefined {
    return this.size === 0 ? undefined : Math.max(...this.#byEnd.keys());
  }

  /** In the order of their ids. */
  list(): LiveJob[] {
    const list: LiveJob[] = [];
    for (const [job, kept] of this.#kept) if (isLive(kept)) list.push({ job, ...kept });
    return list.sort(byJob);
  }
}

export function isLive(kept: Kept | undefined): kept is Kept & Pick<LiveJob, "kind"> {
  return kept !== undefined && kept.kind !== "gone";
}

export function weightOf({ amount, floor }: Kept): bigint {
  return amount > floor ? amount : floor;
}

/** @returns the end of the step that `until` is in */
export function endOfStep(until: number, step: number): number {
  return Math.ceil(until / step) * step;
}

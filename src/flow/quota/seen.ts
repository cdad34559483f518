/**
 * What this process remembers of its talk with live usage. All of it may be forgotten: then more is looked up,
 * or handed over once more.
 */

const JOBS_MAX = 100_000;
const NAMESPACES_MAX = 20_000;
const LOGS_MAX = 1_000;
const JUDGE_EVERY_MS = 1_000;

export class Seen {
  readonly #absent = new Recent<bigint>(JOBS_MAX);
  readonly #handed = new Recent<bigint>(NAMESPACES_MAX);
  readonly #judgedBy = new Recent<{ at: number; size: bigint }>(LOGS_MAX);

  /** The size of the log at which a job had no usage, where that was looked up. */
  absentAt(log: string, job: string): bigint | undefined {
    return this.#absent.get(`${log}:${job}`);
  }

  absent(log: string, job: string, asOf: bigint): void {
    this.#absent.set(`${log}:${job}`, asOf);
  }

  /** Up to where live usage knew, when it was last asked, which jobs have ended. */
  handedTo({ log, namespace }: { log: string; namespace: string }): bigint | undefined {
    return this.#handed.get(`${log}:${namespace}`);
  }

  handed({ log, namespace }: { log: string; namespace: string }, asOf: bigint): void {
    this.#handed.set(`${log}:${namespace}`, asOf);
  }

  /**
   * The size that a log's prefix has to have been read to: `size`, or for a moment after that was said
   * the one that was said then, so that a log that grows all the time is not read all the time.
   */
  judgeBy(log: string, size: bigint, now: number): bigint {
    const last = this.#judgedBy.get(log);
    if (last !== undefined && last.size <= size && now - last.at < JUDGE_EVERY_MS) return last.size;
    this.#judgedBy.set(log, { at: now, size });
    return size;
  }
}

/** Of more than `max` those that were set longest ago are forgotten. */
class Recent<V> {
  readonly #values = new Map<string, V>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get(key: string): V | undefined {
    return this.#values.get(key);
  }

  set(key: string, value: V): void {
    this.#values.delete(key);
    this.#values.set(key, value);
    if (this.#values.size <= this.#max) return;
    const [oldest] = this.#values.keys();
    if (oldest !== undefined) this.#values.delete(oldest);
  }
}

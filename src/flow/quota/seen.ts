/**
 * What this process remembers of its talk with live usage. All of it may be forgotten: then more is looked up,
 * or handed over once more. It is forgotten with the copy of the log by which it was learnt: another may be
 * of a log that lost its end, where the same sizes hold other entries.
 */
import type { NamespaceKey } from "../../core/quota/live.ts";
import type { Held } from "./copy.ts";

const JOBS_MAX = 100_000;
const NAMESPACES_MAX = 20_000;
const LOGS_MAX = 1_000;
const JUDGE_EVERY_MS = 1_000;

/** What a size of the log belongs to. */
type Place = Pick<Held, "asOf" | "copy">;

interface Absence extends Place {
  /** Epoch milliseconds of the look itself; what was committed since has told the rest. */
  readonly at: number;
}

export class Seen {
  readonly #absent = new Recent<Absence>(JOBS_MAX);
  readonly #handed = new Recent<Place>(NAMESPACES_MAX);
  readonly #judgedBy = new Recent<{ at: number; size: bigint }>(LOGS_MAX);

  /** The size of the log at which a job had no usage, where that was looked up. */
  absentAt(log: string, job: string, { copy }: Pick<Place, "copy">): Absence | undefined {
    const last = this.#absent.get(`${log}:${job}`);
    return last?.copy === copy ? last : undefined;
  }

  /** @param look.at undefined: by what was committed since the last look */
  absent(log: string, job: string, look: { held: Place; at: number | undefined }): void {
    const name = `${log}:${job}`;
    const { asOf, copy } = look.held;
    const at = look.at ?? this.#absent.get(name)?.at ?? 0;
    this.#absent.set(name, { asOf, copy, at });
  }

  /** Up to where this process has told live usage which jobs have ended. */
  handedTo({ log, namespace }: NamespaceKey, { copy }: Pick<Place, "copy">): bigint | undefined {
    const last = this.#handed.get(`${log}:${namespace}`);
    return last?.copy === copy ? last.asOf : undefined;
  }

  /** Never further than what this process has read: what others know may be of an end that is lost. */
  handed({ log, namespace }: NamespaceKey, { asOf, copy }: Place): void {
    this.#handed.set(`${log}:${namespace}`, { asOf, copy });
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

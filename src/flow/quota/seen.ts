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
    const last = this.#absent.get(log, job);
    return last?.copy === copy ? last : undefined;
  }

  /** @param look.at undefined: by what was committed since the last look */
  absent(log: string, job: string, look: { held: Place; at: number | undefined }): void {
    const { asOf, copy } = look.held;
    const at = look.at ?? this.#absent.get(log, job)?.at ?? 0;
    this.#absent.set(log, job, { asOf, copy, at });
  }

  /** Up to where this process has told live usage which jobs have ended. */
  handedTo({ log, namespace }: NamespaceKey, { copy }: Pick<Place, "copy">): bigint | undefined {
    const last = this.#handed.get(log, namespace);
    return last?.copy === copy ? last.asOf : undefined;
  }

  /** Never further than what this process has read: what others know may be of an end that is lost. */
  handed({ log, namespace }: NamespaceKey, { asOf, copy }: Place): void {
    this.#handed.set(log, namespace, { asOf, copy });
  }

  /**
   * The size that a log's prefix has to have been read to: `size`, or for a moment after that was said
   * the one that was said then, so that a log that grows all the time is not read all the time.
   */
  judgeBy(log: string, size: bigint, now: number): bigint {
    const last = this.#judgedBy.get(log, "");
    if (last !== undefined && last.size <= size && now - last.at < JUDGE_EVERY_MS) return last.size;
    this.#judgedBy.set(log, "", { at: now, size });
    return size;
  }
}

/** By log and name: to join the two takes longer than to look twice. */
type Names<V> = Map<string, Map<string, V>>;

/** Holds `max` at the most: in two halves, so that what was set last is found, and the older half goes at once. */
class Recent<V> {
  #newer: Names<V> = new Map();
  #older: Names<V> = new Map();
  #room: number;
  readonly #half: number;

  constructor(max: number) {
    this.#half = max / 2;
    this.#room = this.#half;
  }

  get(log: string, name: string): V | undefined {
    return this.#newer.get(log)?.get(name) ?? this.#older.get(log)?.get(name);
  }

  set(log: string, name: string, value: V): void {
    const names = this.#newer.get(log) ?? new Map<string, V>();
    this.#newer.set(log, names);
    if (!names.has(name)) this.#room -= 1;
    names.set(name, value);
    if (this.#room > 0) return;
    this.#older = this.#newer;
    this.#newer = new Map();
    this.#room = this.#half;
  }
}

/**
 * Turns at the log: per log one queue and one commit at a time. No timer; what comes while a commit is
 * under way goes into the next, so that batches grow with the load and nobody waits without it.
 */

/** Takes its turn together with others of its log, or alone. */
export type Work<T> = { kind: "shared"; size: number; item: T } | { kind: "alone"; item: T };

interface Lane<T, M> {
  readonly memory: M;
  readonly queue: Work<T>[];
  running: boolean;
}

interface Options<T, M> {
  /** What the process remembers of a log between turns; forgotten for those used longest ago. */
  memory: (log: string) => M;
  /** One turn. Never rejects. */
  perform: (memory: M, items: readonly T[]) => Promise<void>;
  /** A turn takes works up to this size, or one larger work alone. */
  sizeMax: number;
  /** Logs that are remembered. */
  logsMax: number;
}

export class Lanes<T, M> {
  readonly #options: Options<T, M>;
  readonly #lanes = new Map<string, Lane<T, M>>();
  readonly #running = new Set<Promise<void>>();

  constructor(options: Options<T, M>) {
    this.#options = options;
  }

  push(log: string, work: Work<T>): void {
    const lane = this.#lane(log);
    lane.queue.push(work);
    if (lane.running) return;
    lane.running = true;
    const run = this.#drain(lane).then(() => {
      this.#running.delete(run);
    });
    this.#running.add(run);
  }

  /** What is remembered of a log now, in the midst of a turn too. */
  remembered(log: string): M | undefined {
    return this.#lanes.get(log)?.memory;
  }

  /** Until every turn is over. */
  async idle(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #drain(lane: Lane<T, M>): Promise<void> {
    // What else arrives in this turn of the event loop joins the first commit.
    await new Promise(setImmediate);
    while (lane.queue.length > 0) {
      const works = take(lane.queue, this.#options.sizeMax);
      await this.#options.perform(
        lane.memory,
        works.map((work) => work.item),
      );
    }
    lane.running = false;
  }

  /** Moved to the end of the map's order: the one used longest ago is the first to be forgotten. */
  #lane(log: string): Lane<T, M> {
    const memory = this.#options.memory;
    const lane = this.#lanes.get(log) ?? { memory: memory(log), queue: [], running: false };
    this.#lanes.delete(log);
    this.#lanes.set(log, lane);
    for (const [oldest, { running }] of this.#lanes) {
      if (this.#lanes.size <= this.#options.logsMax) break;
      if (!running && oldest !== log) this.#lanes.delete(oldest);
    }
    return lane;
  }
}

/** Whole works from the front, in their order. */
function take<T>(queue: Work<T>[], sizeMax: number): Work<T>[] {
  let size = 0;
  let count = 0;
  for (const work of queue) {
    if (work.kind === "alone") break;
    size += work.size;
    if (count > 0 && size > sizeMax) break;
    count += 1;
  }
  return queue.splice(0, Math.max(count, 1));
}

/**
 * Receipts of each no: what it was computed from, for the namespace's owner to see. Written before the no is
 * answered, and never a reason for an answer to fail or to wait long. A job that is told the same at
 * every heartbeat is written down once a minute.
 */
import { formatComputeMs } from "../../core/charge.ts";
import { computeMs, instantText } from "../../core/unit.ts";
import type { Sql } from "../../store/connect.ts";
import { recordStops, type Stop, type StopAsk, type Stopping } from "../../store/stops.ts";
import type { Clock } from "../clock.ts";
import type { Asked } from "./ask.ts";

/** What one namespace was asked, and which of its jobs were told no. */
export interface Stopped {
  namespace: string;
  /** Undefined: nothing was known, so nothing was computed. */
  asked: Pick<Asked, "figures" | "live" | "reserved" | "source"> | undefined;
  stops: { job: string; ask: StopAsk; by: string; reason: string }[];
}

export interface Stops {
  /** Resolves when they are kept, or that takes too long; never rejects. */
  keep(log: string, stopped: readonly Stopped[]): Promise<void>;
  /** Those that were not kept: nothing was known, too many came at once, or the database was away. */
  dropped(): number;
  /** Resolves when all that is on its way is written. */
  close(): Promise<void>;
}

/** Of a namespace. */
const ROWS_MAX = 1_000;
export const STOPS_KEPT_MS = 35 * 24 * 60 * 60 * 1_000;
/** Between two times that the same no is written. */
const AGAIN_MS = 60_000;
const REMEMBERED_MAX = 50_000;
/** So long an answer waits. */
const PATIENCE_MS = 250;
const WRITING_MAX = 8;

interface Batch {
  stops: Stop[];
  stoppings: Stopping[];
}

/** @param options.sql as writer */
export function openStops(options: {
  sql: Sql;
  clock: Clock;
  failed?: (error: unknown) => void;
}): Stops {
  const { sql, clock } = options;
  const repeats = new Repeats();
  const writing = new Set<Promise<void>>();
  let dropped = 0;

  function drop(log: string, { stops }: Batch): void {
    dropped += stops.length;
    for (const stop of stops) repeats.forget(log, stop);
  }

  async function write(log: string, batch: Batch, now: number): Promise<void> {
    const bounds = { rowsMax: ROWS_MAX, keptFrom: instantText(now - STOPS_KEPT_MS) };
    try {
      await recordStops(sql, log, { ...batch, at: instantText(now) }, bounds);
    } catch (error) {
      drop(log, batch);
      options.failed?.(error);
    }
  }

  return {
    async keep(log, stopped) {
      const now = clock.now();
      // A no of the policy alone was computed from nothing that could be shown.
      for (const { asked, stops } of stopped) if (asked === undefined) dropped += stops.length;
      const batch = batchOf(stopped, (stop) => repeats.due(log, stop, now));
      if (batch.stops.length === 0) return;
      if (writing.size >= WRITING_MAX) return drop(log, batch);
      const written = write(log, batch, now).finally(() => writing.delete(written));
      writing.add(written);
      await patiently(written);
    },
    dropped: () => dropped,
    close: async () => {
      await Promise.all(writing);
    },
  };
}

/** @param due how often a stop came up since it was written, or 0 while that was lately */
function batchOf(stopped: readonly Stopped[], due: (stop: Omit<Stop, "times">) => bigint): Batch {
  const batch: Batch = { stops: [], stoppings: [] };
  for (const { namespace, asked, stops } of stopped) {
    if (asked === undefined) continue;
    const fresh = stops.slice(0, ROWS_MAX).flatMap((each): Stop[] => {
      const stop = { namespace, ...each };
      const times = due(stop);
      return times > 0n ? [{ ...stop, times }] : [];
    });
    if (fresh.length === 0) continue;
    batch.stops.push(...fresh);
    batch.stoppings.push(stoppingOf(namespace, asked));
  }
  return batch;
}

function stoppingOf(
  namespace: string,
  { figures, live, reserved, source }: NonNullable<Stopped["asked"]>,
): Stopping {
  return {
    namespace,
    source,
    asOf: figures.asOf,
    live: formatComputeMs(computeMs(live)),
    reserved: formatComputeMs(computeMs(reserved)),
    figures: figures.text,
  };
}

/** When each was last written, and how often it came up since; of too many the oldest are forgotten. */
class Repeats {
  readonly #known = new Map<string, { writtenAt: number; times: bigint }>();

  due(log: string, stop: Omit<Stop, "times">, now: number): bigint {
    const key = keyOf(log, stop);
    const known = this.#known.get(key);
    if (known !== undefined && now - known.writtenAt < AGAIN_MS) {
      known.times += 1n;
      return 0n;
    }
    this.#known.delete(key);
    this.#known.set(key, { writtenAt: now, times: 0n });
    const [oldest] = this.#known.size > REMEMBERED_MAX ? this.#known.keys() : [];
    if (oldest !== undefined) this.#known.delete(oldest);
    return 1n + (known?.times ?? 0n);
  }

  forget(log: string, stop: Omit<Stop, "times">): void {
    this.#known.delete(keyOf(log, stop));
  }
}

function keyOf(log: string, { namespace, job, ask }: Omit<Stop, "times">): string {
  return `${log}:${namespace}:${job}:${ask}`;
}

async function patiently(work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const enough = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, PATIENCE_MS);
  });
  await Promise.race([work, enough]);
  clearTimeout(timer);
}

/** Looks at what guards the log, all the time: what a database administrator changes is on the log a minute later. */
import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../clock.ts";
import {
  type Build,
  changed,
  type Environing,
  type Environment,
  type Member,
  readGuards,
  sayEnvironment,
  unsaid,
} from "./environment.ts";

const ROUND_MS = 60_000;
const LOOK_MS = 3_600_000;

const GUARDS: readonly Member[] = ["grants_sha256", "triggers_sha256"];
const BUILD: readonly Member[] = ["dependencies_sha256", "schema_sha256", "version"];

export interface Watching extends Environing {
  clock: Clock;
  build: Build;
  /** What is guarded otherwise than when this process began, whenever that changes; none: as it began. */
  onDrift: (members: readonly Member[]) => void;
  /** An entry was written: `members` are new on this log. */
  onSaid: (log: string, members: readonly Member[]) => void;
  onFailure: (error: unknown, log?: string) => void;
}

export interface Watch {
  /** Members that are otherwise than when it began. */
  drift(): readonly Member[];
  round(): Promise<void>;
}

/**
 * Each round looks at the database; logs are looked at once an hour, and after each change. All of it is said at
 * first, and later only what may change while a process runs: two versions side by side do not take turns.
 */
export function watchEnvironment(watching: Watching): Watch {
  const { build, clock, onDrift, onFailure, onSaid, sql } = watching;
  let [began, last]: (Environment | undefined)[] = [];
  let drift: readonly Member[] = [];
  let lookedAt = Number.NEGATIVE_INFINITY;
  let members: readonly Member[] = [...BUILD, ...GUARDS];

  async function say(now: Environment): Promise<boolean> {
    let all = true;
    for (const log of await unsaid(sql, now, members)) {
      try {
        const news = await sayEnvironment(watching, log, now, members);
        if (news.length > 0) onSaid(log, news);
      } catch (error) {
        all = false;
        onFailure(error, log);
      }
    }
    return all;
  }

  return {
    drift: () => drift,
    round: async () => {
      const now = { ...build, ...(await readGuards(sql)) };
      began ??= now;
      const found = changed(began, now);
      if (found.join() !== drift.join()) onDrift(found);
      drift = found;
      const same = last !== undefined && changed(last, now).length === 0;
      if (same && clock.now() - lookedAt < LOOK_MS) return;
      if (!(await say(now))) return;
      [last, lookedAt, members] = [now, clock.now(), GUARDS];
    },
  };
}

/** Runs until aborted. */
export async function watchLoop(
  watch: Watch,
  options: {
    signal: AbortSignal;
    onFailure: (error: unknown) => void;
    onRound: () => void;
  },
): Promise<void> {
  const { signal, onFailure, onRound } = options;
  while (!signal.aborted) {
    const rest = delay(ROUND_MS, undefined, { signal }).catch(() => undefined);
    await watch.round().catch(onFailure);
    onRound();
    await rest;
  }
}

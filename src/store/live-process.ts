/**
 * Live usage in this process' own memory: what it answers from when Redis is away, or when there is none. As
 * in Redis, a namespace is forgotten a day after it was asked for and the last of its jobs ran out.
 */
import type { Figures } from "../core/quota/figures.ts";
import type { Answer, Command, LiveStore, NamespaceKey } from "../core/quota/live.ts";
import { nothingKept, perform, type Standing } from "../core/quota/machine.ts";
import { SLACK_MS } from "./live-script-kept.ts";

/** About a kilobyte each, and 300 bytes more for each of their jobs. */
const NAMESPACES_MAX = 50_000;
const PAGE = 500;

interface Place {
  readonly key: NamespaceKey;
  readonly standing: Standing;
  /** Epoch milliseconds. */
  endsAt: number;
}

/**
 * @param options.namespacesMax beyond it those that were asked for longest ago are forgotten, and first of
 *   all those without bounds, of which nobody is ever stopped: so are all that a runner's host makes up
 */
export function openLiveProcess(options: { namespacesMax?: number } = {}): LiveStore {
  const unbounded = new Map<string, Place>();
  const bounded = new Map<string, Place>();
  const max = options.namespacesMax ?? NAMESPACES_MAX;

  const run = (key: NamespaceKey, command: Command): Answer => {
    const name = `${key.log}:${key.namespace}`;
    const found = bounded.get(name) ?? unbounded.get(name);
    const isKept = found !== undefined && command.now < found.endsAt;
    const place = isKept ? found : { key, standing: nothingKept(), endsAt: 0 };
    const answer = perform(place.standing, command);
    if (command.asks.length > 0) place.endsAt = endOf(place.standing, command.now);
    // Moved to the end of its map's order: the one asked for longest ago is the first to be forgotten.
    unbounded.delete(name);
    bounded.delete(name);
    const { figures } = place.standing;
    if (figures !== undefined) (isUnbounded(figures) ? unbounded : bounded).set(name, place);
    if (unbounded.size + bounded.size > max) forgetOldest(unbounded.size > 0 ? unbounded : bounded);
    return answer;
  };
  return {
    run: async (key, command) => run(key, command),
    walk: async function* () {
      const keys = [...bounded.values(), ...unbounded.values()].map(({ key }) => key);
      for (let i = 0; i < keys.length; i += PAGE) yield keys.slice(i, i + PAGE);
    },
    close: async () => {
      unbounded.clear();
      bounded.clear();
    },
  };
}

function isUnbounded({ startBound, runBound }: Figures): boolean {
  return startBound === undefined && runBound === undefined;
}

function forgetOldest(places: Map<string, Place>): void {
  const [oldest] = places.keys();
  if (oldest !== undefined) places.delete(oldest);
}

function endOf({ jobs }: Standing, now: number): number {
  return Math.max(now, jobs.lastEnd() ?? now) + SLACK_MS;
}

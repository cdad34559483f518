/**
 * Live usage in this process' own memory: what it answers from when Redis is away, or when there is none. As
 * in Redis, a namespace is forgotten a day after it was asked for and the last of its jobs ran out.
 */
import type { Answer, Command, LiveStore, NamespaceKey } from "../core/quota/live.ts";
import { nothingKept, perform, type Standing } from "../core/quota/machine.ts";
import { SLACK_MS } from "./live-script.ts";

/** About a kilobyte each, and 300 bytes more for each of their jobs. */
const NAMESPACES_MAX = 50_000;
const PAGE = 500;

interface Place {
  readonly key: NamespaceKey;
  readonly standing: Standing;
  /** Epoch milliseconds. */
  endsAt: number;
}

/** @param options.namespacesMax beyond it those that were asked for longest ago are forgotten */
export function openLiveProcess(options: { namespacesMax?: number } = {}): LiveStore {
  const places = new Map<string, Place>();
  const max = options.namespacesMax ?? NAMESPACES_MAX;

  const run = (key: NamespaceKey, command: Command): Answer => {
    const name = `${key.log}:${key.namespace}`;
    const found = places.get(name);
    const isKept = found !== undefined && command.now < found.endsAt;
    const place = isKept ? found : { key, standing: nothingKept(), endsAt: 0 };
    const answer = perform(place.standing, command);
    if (command.asks.length > 0) place.endsAt = endOf(place.standing, command.now);
    // Moved to the end of the map's order: the one asked for longest ago is the first to be forgotten.
    places.delete(name);
    if (place.standing.figures !== undefined) places.set(name, place);
    for (const oldest of places.keys()) {
      if (places.size <= max) break;
      places.delete(oldest);
    }
    return answer;
  };
  return {
    run: async (key, command) => run(key, command),
    walk: async function* () {
      const keys = [...places.values()].map(({ key }) => key);
      for (let i = 0; i < keys.length; i += PAGE) yield keys.slice(i, i + PAGE);
    },
    close: async () => places.clear(),
  };
}

function endOf({ jobs }: Standing, now: number): number {
  let last = now;
  for (const { until } of jobs.values()) if (until > last) last = until;
  return last + SLACK_MS;
}

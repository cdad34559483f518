/**
 * Where live usage is asked for: Redis, and while that is away this process' own copy. The copy hears every
 * heartbeat of this process, so that it is not empty when it is needed.
 */
import type { Answer, Ask, Command, LiveStore, NamespaceKey } from "../../core/quota/live.ts";
import type { RedisStore } from "../../store/live-redis.ts";
import type { Clock } from "../clock.ts";

export interface Live {
  /** @returns `source`: who answered; never rejects because Redis is away */
  run(
    key: NamespaceKey,
    command: Command,
  ): Promise<{ answer: Answer; source: "redis" | "process" }>;
  /** All namespaces of both, in pages; one may come twice. Without those of a Redis that fails meanwhile. */
  walk(): AsyncIterable<readonly NamespaceKey[]>;
  /** `none`: there is no Redis, and the copy is all there is. */
  state(): "up" | "away" | "none";
  /** This process' copy: all there is, or what it heard itself. */
  readonly own: LiveStore;
  close(): Promise<void>;
}

/** So long a server that failed is left alone. Then one call tries it, and the others do not wait for it. */
const RETRY_MS = 1_000;

/** @param options.failed is told of every call that Redis did not answer */
export function openLive(options: {
  redis?: RedisStore | undefined;
  process: LiveStore;
  clock: Clock;
  failed: (error: unknown) => void;
}): Live {
  const { redis, process, clock, failed } = options;
  /** Servers that failed, to when they are tried again. */
  const away = new Map<string, number>();

  const viaRedis = async (
    store: RedisStore,
    key: NamespaceKey,
    command: Command,
  ): Promise<Answer | undefined> => {
    const part = store.part(key);
    const retryAt = away.get(part);
    if (retryAt !== undefined && clock.now() < retryAt) return undefined;
    if (retryAt !== undefined) away.set(part, clock.now() + RETRY_MS);
    try {
      const answer = await store.run(key, command);
      away.delete(part);
      return answer;
    } catch (error) {
      away.set(part, clock.now() + RETRY_MS);
      failed(error);
      return undefined;
    }
  };

  return {
    own: process,
    run: async (key, command) => {
      if (redis === undefined)
        return { answer: await process.run(key, command), source: "process" };
      const heard = command.asks.filter(isHeard);
      if (heard.length > 0) {
        const answer = await process.run(key, { ...command, asks: heard });
        // The copy lacks what the caller can bring it by coming again, and then it is asked again too.
        if (answer.kind !== "done") return { answer, source: "process" };
      }
      const answer = await viaRedis(redis, key, command);
      if (answer !== undefined) return { answer, source: "redis" };
      return { answer: await process.run(key, command), source: "process" };
    },
    walk: async function* () {
      if (redis !== undefined) {
        try {
          yield* redis.walk();
          away.clear();
        } catch (error) {
          failed(error);
        }
      }
      yield* process.walk();
    },
    state: () => {
      if (redis === undefined) return "none";
      return redis.connected() && away.size === 0 ? "up" : "away";
    },
    close: async () => {
      await redis?.close();
      await process.close();
    },
  };
}

/** What somebody said, not what was granted: a grant of one process is no fact for all. */
function isHeard({ kind }: Ask): boolean {
  return kind === "run" || kind === "never_ran";
}

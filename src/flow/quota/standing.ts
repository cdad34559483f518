/**
 * Where live usage is asked for: Redis, and while that is away this process' own copy. The copy hears every
 * heartbeat of this process, so that it is not empty when it is needed.
 */
import type { Answer, Ask, Call, Command, LiveStore, NamespaceKey } from "../../core/quota/live.ts";
import type { RedisStore } from "../../store/live-redis.ts";
import type { Clock } from "../clock.ts";
import { Breaker } from "./breaker.ts";

export interface Live {
  /** Never rejects because Redis is away. */
  run(key: NamespaceKey, command: Command): Promise<Told>;
  /** As `run` of each, all at once, where nothing is said of any job. */
  askAll(calls: readonly Call[]): Promise<Told[]>;
  /** All namespaces of both, in pages; one may come twice. Without those of servers that fail meanwhile. */
  walk(): AsyncIterable<readonly NamespaceKey[]>;
  /** Tries servers that are away: those of whose namespaces nobody asks anything come back, too. */
  retry(): Promise<void>;
  /** `away`: some server is. `none`: there is no Redis, and the copy is all there is. */
  state(): "up" | "away" | "none";
  /** This process' copy: all there is, or what it heard itself. */
  readonly own: LiveStore;
  close(): Promise<void>;
}

export interface Told {
  answer: Answer;
  /** Who answered. */
  source: "redis" | "process";
}

/** @param options.failed is told of every call that Redis did not answer */
export function openLive(options: {
  redis?: RedisStore | undefined;
  process: LiveStore;
  clock: Clock;
  failed: (error: unknown) => void;
}): Live {
  const { redis, process } = options;
  return redis === undefined ? aloneWith(process) : besideOf(redis, options);
}

function aloneWith(process: LiveStore): Live {
  const run: Live["run"] = async (key, command) => {
    return { answer: await process.run(key, command), source: "process" };
  };
  return {
    own: process,
    run,
    askAll: (calls) => Promise.all(calls.map(({ key, command }) => run(key, command))),
    walk: () => process.walk(),
    retry: async () => undefined,
    state: () => "none",
    close: () => process.close(),
  };
}

function besideOf(
  redis: RedisStore,
  { process, ...watching }: { process: LiveStore; clock: Clock; failed: (error: unknown) => void },
): Live {
  const breaker = new Breaker(redis, watching);
  const alone = aloneWith(process);

  const askAll: Live["askAll"] = async (calls) => {
    const answers = await breaker.ask(calls, (tried) => redis.runAll(tried));
    const told: Told[] = [];
    for (const [i, { key, command }] of calls.entries()) {
      const answer = answers[i];
      told.push(answer ? { answer, source: "redis" } : await alone.run(key, command));
    }
    return told;
  };

  const ask: Live["run"] = async (key, command) => {
    const [told] = await askAll([{ key, command }]);
    return told ?? alone.run(key, command);
  };

  const hear: Live["run"] = async (key, command) => {
    const own = await process.run(key, { ...command, asks: command.asks.filter(isHeard) });
    // The copy lacks what the caller can bring it by coming again, and then it is asked again too.
    if (own.kind !== "done") return { answer: own, source: "process" };
    const answered = await ask(key, command);
    const asks = answered.source === "redis" ? refusedOf(command.asks, answered.answer) : [];
    if (asks.length > 0) await process.run(key, { ...command, asks });
    return answered;
  };

  return {
    own: process,
    run: (key, command) => (command.asks.some(isHeard) ? hear : ask)(key, command),
    askAll,
    walk: async function* () {
      breaker.forgetReplaced();
      for (const part of redis.parts()) {
        try {
          yield* redis.walk(part);
          breaker.answered(part);
        } catch (error) {
          // To list takes longer than to decide: decisions find out by themselves who is away.
          watching.failed(error);
        }
      }
      yield* process.walk();
    },
    retry: () => breaker.retry(),
    state: () => (breaker.isWhole() ? "up" : "away"),
    close: async () => {
      await redis.close();
      await process.close();
    },
  };
}

/** What somebody said, not what was granted: a grant of one process is no fact for all. */
function isHeard({ kind }: Ask): boolean {
  return kind === "run" || kind === "never_ran" || kind === "revoked";
}

/** What Redis knows better: who else was told that it never ran must not go on to count it alone. */
function refusedOf(asks: readonly Ask[], answer: Answer): Ask[] {
  if (answer.kind !== "done") return [];
  return asks.flatMap(({ kind, job }, i): Ask[] => {
    return kind === "run" && answer.results[i]?.known === false ? [{ kind: "never_ran", job }] : [];
  });
}

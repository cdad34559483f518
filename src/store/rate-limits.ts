/**
 * How much of a window of time somebody has used up: in Redis, for all processes together, or in this one while
 * there is none or it does not answer.
 */
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import { connectRedis, type RedisPlace } from "./live-redis.ts";

export interface Window {
  /** Names whose window it is apart from those of other kinds. */
  kind: string;
  /** In one window. */
  points: number;
  seconds: number;
}

export interface Taken {
  granted: boolean;
  /** Until the window is over and another begins. */
  ms: number;
}

export interface RateLimits {
  /** Takes so many points of somebody's window, or none at all. */
  open(window: Window): (name: string, points: number) => Promise<Taken>;
  close(): void;
}

const PREFIX = "minutebook:rate:";
/** Redis is asked so rarely that nobody waits for it for longer. */
const ANSWER_MS_MAX = 250;

/**
 * @param refused is told why there is no connection
 * @param answerMsMax so long Redis is waited for
 */
export function openRateLimits(
  place: RedisPlace | undefined,
  refused: (error: unknown) => void = () => undefined,
  answerMsMax = ANSWER_MS_MAX,
): RateLimits {
  const storeClient = place && connectRedis(place, refused);
  storeClient?.on("error", refused);
  return {
    open: ({ kind, points, seconds: duration }) => {
      const window = { points, duration, keyPrefix: `${PREFIX}${kind}` };
      const here = new RateLimiterMemory(window);
      const there = storeClient && new RateLimiterRedis({ ...window, storeClient });
      if (there === undefined) return (name, points) => taken(here.consume(name, points));
      return async (name, points) => {
        try {
          return await inTime(taken(there.consume(name, points)), answerMsMax);
        } catch {
          return await taken(here.consume(name, points));
        }
      };
    },
    close: () => storeClient?.disconnect(),
  };
}

/** What is refused is rejected by the library, and so is what could not be asked. */
async function taken(consumed: Promise<RateLimiterRes>): Promise<Taken> {
  try {
    return { granted: true, ms: (await consumed).msBeforeNext };
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error;
    return { granted: false, ms: error.msBeforeNext };
  }
}

function inTime<T>(answer: Promise<T>, msMax: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("redis: no answer in time")), msMax);
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}

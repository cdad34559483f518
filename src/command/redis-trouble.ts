/**
 * What is said of a Redis that is away: that it is, each reason that is new, and that it is back. By its state
 * and not by calls: without calls nothing would be said to go on again.
 */
import type { RedisPlace, RedisStore } from "../store/live-redis.ts";
import { redisReason } from "../store/redis-reason.ts";
import type { Logger } from "../telemetry.ts";
import { openTrouble } from "./trouble.ts";

/** Of one outage: a server that alternates between two must not fill the log. */
const REASONS_MAX = 8;

export interface RedisTrouble {
  /** The client could not connect, sign in, or find the servers. */
  refused(error: unknown): void;
  /** A call was not answered. */
  failed(error: unknown, redis: Pick<RedisStore, "connected">): void;
  /** To be called once a second or so. */
  look(isAway: boolean): void;
}

export function openRedisTrouble(place: RedisPlace, log: Logger): RedisTrouble {
  const trouble = openTrouble(log, "redis, quota is decided by what this process knows");
  const said = new Set<string>();
  let reason = "not connected";
  /** What was said last of this outage. */
  let outage: string | undefined;
  return {
    refused: (error) => {
      reason = redisReason(place, error);
    },
    failed: (error, redis) => {
      // Without a connection every call says just that, and what keeps it from coming about is known better.
      if (redis.connected()) reason = redisReason(place, error);
    },
    look: (isAway) => {
      if (isAway && !said.has(reason) && said.size < REASONS_MAX) {
        said.add(reason);
        outage = reason;
      } else if (!isAway) {
        said.clear();
        outage = undefined;
      }
      if (outage !== undefined) trouble.failed(outage);
      trouble.roundEnded();
    },
  };
}

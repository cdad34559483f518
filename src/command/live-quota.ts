/** What quota is decided with: the ledger's copy, and live usage in Redis or in this process. */
import type { Config } from "../config.ts";
import type { Clock } from "../flow/clock.ts";
import type { Appender } from "../flow/log/append.ts";
import type { Quotaing } from "../flow/quota/decide.ts";
import { type Ledger, openLedger } from "../flow/quota/ledger.ts";
import { LiveBudget } from "../flow/quota/live-budget.ts";
import { Seen } from "../flow/quota/seen.ts";
import { type Live, openLive } from "../flow/quota/standing.ts";
import { openStops } from "../flow/quota/stops.ts";
import type { Sql } from "../store/connect.ts";
import { openLiveProcess } from "../store/live-process.ts";
import { openLiveRedis, type RedisPlace } from "../store/live-redis.ts";
import type { Logger } from "../telemetry.ts";
import { openRedisTrouble } from "./redis-trouble.ts";

const LOOK_MS = 1_000;

/** With a Redis that is away, too: it is tried again for as long as we run. */
export async function openLiveUsage(options: {
  redis: RedisPlace | undefined;
  clock: Clock;
  log: Logger;
}): Promise<Live> {
  const { clock, log, redis: place } = options;
  const process = openLiveProcess();
  if (place === undefined) return openLive({ process, clock, failed: () => undefined });
  const trouble = openRedisTrouble(place, log);
  const redis = await openLiveRedis(place, { refused: trouble.refused });
  const failed = (error: unknown): void => trouble.failed(error, redis);
  const live = openLive({ redis, process, clock, failed });
  const look = (): void => trouble.look(live.state() === "away");
  look();
  const timer = setInterval(look, LOOK_MS).unref();
  const close = async (): Promise<void> => {
    clearInterval(timer);
    await live.close();
  };
  return { ...live, close };
}

export interface LiveQuota extends Quotaing {
  ledger: Ledger;
  live: Live;
  close(): Promise<void>;
}

/** @param options.sql as writer: what is committed is seen there at once */
export function openQuota(options: {
  config: Config;
  sql: Sql;
  clock: Clock;
  live: Live;
  appender: Appender;
  log: Logger;
}): LiveQuota {
  const { appender, clock, config, live, log, sql } = options;
  const warn = (what: string) => (error: unknown) => log.warn({ err: error }, what);
  const ledger = openLedger({ sql, clock, failed: warn("figures of quota, answered with older") });
  const stops = openStops({ sql, clock, failed: warn("stops of quota, not kept") });
  return {
    ...{ appender, clock, ledger, live, stops },
    seen: new Seen(),
    budget: new LiveBudget(),
    policy: config.quota.withoutRedis,
    startFloorMs: BigInt(config.quota.startReserveMs),
    close: async () => {
      await Promise.all([stops.close(), ledger.close()]);
      await live.close();
    },
  };
}

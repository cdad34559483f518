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
import { openTrouble } from "./trouble.ts";

const LOOK_MS = 1_000;

/** With a Redis that is away, too: it is tried again for as long as we run. */
export async function openLiveUsage(options: {
  redis: RedisPlace | undefined;
  mode: Config["mode"];
  clock: Clock;
  log: Logger;
}): Promise<Live> {
  const { clock, log, mode, redis: place } = options;
  const process = openLiveProcess();
  if (place === undefined) {
    if (mode === "production") {
      log.warn("no Redis is configured: live usage is known to this process alone, so run one");
    }
    return openLive({ process, clock, failed: () => undefined });
  }
  const redis = await openLiveRedis(place);
  const trouble = openTrouble(log, "redis, quota is decided by what this process knows");
  let reason = "not connected";
  /** As the outage began: each call that fails in it has words of its own. */
  let outage: string | undefined;
  const live = openLive({
    ...{ redis, process, clock },
    // The client's own errors carry the command, and with it what namespaces use.
    failed: (error) => {
      reason = error instanceof Error ? error.message : String(error);
    },
  });
  // By its state and not by calls: without calls nothing is said to go on again.
  const look = (): void => {
    outage = live.state() === "away" ? (outage ?? reason) : undefined;
    if (outage !== undefined) trouble.failed(outage);
    trouble.roundEnded();
  };
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

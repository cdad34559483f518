/** Who comes in, how often, and that it is written down: put together for one process. */
import type { Config } from "../config.ts";
import { ConfigError } from "../config-error.ts";
import { openAccessLog } from "../flow/access/log.ts";
import { openPace } from "../flow/access/pace.ts";
import { openStandings, type Standings } from "../flow/access/standing.ts";
import { authenticator } from "../flow/authenticate.ts";
import type { Gate } from "../http/router.ts";
import type { Sql } from "../store/connect.ts";
import type { RedisPlace } from "../store/live-redis.ts";
import { openRateLimits } from "../store/rate-limits.ts";
import type { Logger } from "../telemetry.ts";
import type { Foundation } from "./foundation.ts";

export interface OpenGate {
  gate: Gate;
  standings: Standings;
  /** When nobody asks any more. */
  close(): Promise<void>;
}

/**
 * @param options.sql as writer
 * @throws ConfigError in production, where anybody would be taken at the word of a token made by a command
 */
export function openGate(options: {
  config: Config;
  foundation: Pick<Foundation, "issuers" | "principalKey">;
  sql: Sql;
  redis: RedisPlace | undefined;
  log: Logger;
}): OpenGate {
  const { config, foundation, sql, redis, log } = options;
  const { issuers, principalKey } = foundation;
  if (config.mode === "production" && issuers.some(({ grants }) => grants === "claims")) {
    throw new ConfigError("production takes no tokens of development's own issuer");
  }
  const warn = (what: string) => (error: unknown) => log.warn({ err: error }, what);
  const standings = openStandings({ sql, failed: warn("roles of the logs, as they were") });
  const accesses = openAccessLog({ sql, failed: warn("access log, answered busy") });
  const limits = openRateLimits(redis);
  const window = (kind: "caller" | "machine") => {
    return { kind, points: config.rates[kind], seconds: config.rates.seconds };
  };
  const authenticate = authenticator(issuers, principalKey, {
    failed: (issuer, error) => {
      log.warn({ err: error, issuer }, "keys of an issuer, answered issuer-unavailable");
    },
    standing: standings.current,
  });
  return {
    gate: {
      authenticate,
      callers: openPace(limits, window("caller")),
      machines: openPace(limits, window("machine")),
      accesses,
    },
    standings,
    close: async () => {
      await accesses.close();
      limits.close();
    },
  };
}

/** All that one process appends, seals and folds with, opened together and closed in order. */
import { randomBytes } from "node:crypto";
import { availableParallelism } from "node:os";
import type { Config } from "../config.ts";
import { configuredRoles } from "../flow/access/configured.ts";
import type { Pace } from "../flow/access/pace.ts";
import type { Clock } from "../flow/clock.ts";
import { openKeyring } from "../flow/key/keyring.ts";
import type { ServiceVersion } from "../flow/log/announce.ts";
import { openAppender } from "../flow/log/append.ts";
import { openGuard, type SealGuard } from "../flow/log/guard.ts";
import type { Finishing } from "../flow/month/finish.ts";
import type { Live } from "../flow/quota/standing.ts";
import type { Webhook } from "../flow/quota/webhook.ts";
import { openDirectory } from "../flow/report/directory.ts";
import { openIntake } from "../flow/report/intake.ts";
import { openReceipts } from "../flow/report/receipt.ts";
import { openRegister } from "../flow/report/register.ts";
import { sha256 } from "../flow/report/signature.ts";
import { startVerifier } from "../flow/report/verify.ts";
import type { Services } from "../http/app.ts";
import type { Sql } from "../store/connect.ts";
import { type Logger, type Metrics, openMetrics } from "../telemetry.ts";
import { type Background, startBackground } from "./background.ts";
import type { Foundation } from "./foundation.ts";
import { openQuota } from "./live-quota.ts";

export interface Engine {
  flow: Services["flow"];
  finishing: Finishing;
  guard: SealGuard;
  metrics: Metrics;
  background: Background;
  /** When nobody asks any more: what was taken is answered, then sealed and folded. */
  stop(): Promise<void>;
}

/**
 * @param options.sql as writer
 * @param options.behind as writer, for what runs beside requests
 * @param options.reader what is shown is read by
 * @param options.quotaSql as writer, for what decisions wait for
 * @param options.live ends with the engine
 */
export function startEngine(options: {
  config: Config;
  foundation: Foundation;
  sql: Sql;
  behind: Sql;
  reader: Sql;
  quotaSql: Sql;
  live: Live;
  webhook: Webhook | undefined;
  log: Logger;
  clock: Clock;
  service: ServiceVersion;
  pace: Pace;
}): Engine {
  const { config, foundation, sql, behind, reader, quotaSql, live, webhook, log, clock, service } =
    options;
  const { archive, keys: held } = foundation;
  const hash = sha256;
  const random = (bytes: number): Uint8Array => new Uint8Array(randomBytes(bytes));
  const warn = (what: string) => (error: unknown) => log.warn({ err: error }, what);
  const keyring = openKeyring({ serviceName: config.serviceName, held, sql, clock });
  const { signerFor } = keyring;
  const guard = openGuard({ archive, signerFor, clock, hash });
  const failed = warn("receipt, answered without");
  const receipts = openReceipts({ keyring, clock, hash, failed });
  const directory = openDirectory(sql);
  const register = openRegister({ sql, clock, failed: warn("register of refusals") });
  const intake = openIntake();
  const verifier = startVerifier({
    threads: config.verifierThreads ?? availableParallelism(),
    lookup: (kids) => directory.find(kids),
  });
  const metrics = openMetrics({
    sealLag: () => background.sealLag(),
    refused: () => guard.state().values(),
    verifierPending: () => verifier.pending(),
    reportsUnderWay: () => intake.reports(),
    refusalsDropped: () => register.dropped(),
    anchors: () => background.anchors(),
    reviewsOverdue: () => background.reviewsOverdue(),
    surroundings: () => background.surroundings(),
    lateExports: () => background.lateExports(),
    redis: live.state,
    ledger: () => quota.ledger.loaded(),
    stopsDropped: () => quota.stops.dropped(),
  });
  const appender = openAppender({
    ...{ sql, clock, random, hash, guard },
    failed: warn("append, answered busy"),
    committed: metrics.committed,
  });
  const quota = openQuota({ config, sql: quotaSql, clock, live, appender, log });
  const sealer = { sql: behind, archive, guard, signerFor, clock, hash };
  const policy = config.witnessPolicy;
  const closeDelayDays = BigInt(config.closeDelayDays);
  const background = startBackground({
    ...{ sealer, appender, quota, random, reader, log, metrics, service, policy, closeDelayDays },
    witnessIntervalMs: config.witnessIntervalMs,
    webhook,
    reconciliation: config.reconciliation,
    exports: config.exports,
    files: foundation.exports,
    ...{ writerUrl: foundation.writerUrl, keyring },
  });
  return {
    flow: {
      ...{ verifier, appender, directory, register, intake, receipts, random, service, keyring },
      quota,
      roles: configuredRoles(foundation.issuers),
      mustSayControl: config.mode === "production",
      pace: options.pace,
    },
    finishing: { ...sealer, appender, random, policy, closeDelayDays },
    guard,
    metrics,
    background,
    stop: async () => {
      await background.stop();
      await Promise.all([verifier.close(), register.close(), quota.close()]);
    },
  };
}

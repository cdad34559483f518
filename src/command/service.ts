/** One process of the service: everything put together, and taken apart again in order. */
import type { Config } from "../config.ts";
import { ConfigError } from "../config-error.ts";
import { hookSecrets } from "../config-reconciliation.ts";
import type { Role } from "../flow/access/grant.ts";
import { type Clock, systemClock } from "../flow/clock.ts";
import { openSealWatch, type SealWatch } from "../flow/feed/seal-watch.ts";
import type { Appender } from "../flow/log/append.ts";
import { openPublished } from "../flow/log/published.ts";
import { openVisibility } from "../flow/log/visibility.ts";
import type { Live } from "../flow/quota/standing.ts";
import type { Webhook } from "../flow/quota/webhook.ts";
import { sha256 } from "../flow/report/signature.ts";
import { createApp } from "../http/app.ts";
import { openStreams, type Streams } from "../http/streams.ts";
import { connect, type Sql } from "../store/connect.ts";
import { schemaHash } from "../store/migration-files.ts";
import { requireCurrentSchema } from "../store/migrations.ts";
import { assertServiceRole } from "../store/privileges.ts";
import type { Logger } from "../telemetry.ts";
import { VERSION } from "../version.ts";
import { statementPage } from "../web/statement.tsx";
import { type Engine, startEngine } from "./engine.ts";
import { migrationsFolder } from "./folder.ts";
import { type Foundation, layFoundation } from "./foundation.ts";
import { type OpenGate, openGate } from "./gate.ts";
import { localToken } from "./issuer.ts";
import { listen } from "./listener.ts";
import { openLiveUsage } from "./live-quota.ts";
import { readWebhook } from "./notifying.ts";
import { watchReadiness } from "./readiness.ts";

export interface ServiceOptions {
  config: Config;
  log: Logger;
  /** Of entries, seals and answers; the machine's own if absent. */
  clock?: Clock;
  /** With other bounds than the usual ones. */
  streams?: Streams;
}

export interface Service {
  /** Where it listens, without a trailing slash. */
  url: string;
  appender: Appender;
  /** A bearer token of the local issuer. @throws ConfigError where there is none */
  token(roles: readonly Role[], subject?: string): Promise<string>;
  /** Stops accepting, answers what is in flight, seals and folds a last time, ends what it started. */
  stop(): Promise<void>;
}

const WRITERS = 12;
const BEHIND = 8;
const READERS = 8;
const QUOTA = 4;
const END_SECONDS = 5;

/**
 * @param options.data the folder of the embedded default; unused where the configuration names all
 * @throws ConfigError, UnsafeRoleError, MigrationError, EmbeddedError: nothing is left running
 */
export async function startService(options: ServiceOptions & { data: string }): Promise<Service> {
  const { config, data, log } = options;
  return await startOn(await layFoundation(config, data, (line) => log.info(line)), options);
}

/** On a foundation that is there; it ends with the service, or when that cannot start. */
export async function startOn(
  foundation: Foundation,
  { config, log, clock = systemClock, streams = openStreams() }: ServiceOptions,
): Promise<Service> {
  const sql = connect(foundation.writerUrl, { max: WRITERS, name: "minutebook-writer" });
  // Its own: seals would wait behind every append that waits for a connection.
  const behind = connect(foundation.writerUrl, { max: BEHIND, name: "minutebook-background" });
  const reader = connect(foundation.readerUrl, { max: READERS, name: "minutebook-reader" });
  // Its own: a decision must not wait behind reports, nor behind the queries of readers.
  const quotaSql = connect(foundation.writerUrl, { max: QUOTA, name: "minutebook-quota" });
  const end = async (): Promise<void> => {
    await Promise.all(
      [sql, behind, reader, quotaSql].map((pool) => pool.end({ timeout: END_SECONDS })),
    );
    await foundation.stop();
  };
  const redis = config.quota.redis ?? foundation.redis;
  let live: Live;
  let webhook: Webhook | undefined;
  let gate: OpenGate;
  try {
    webhook = readWebhook(config);
    await Promise.all([sql, reader].map(assertServiceRole));
    await requireCurrentSchema(sql, migrationsFolder());
    gate = openGate({ config, foundation, sql, redis, log });
    live = await openLiveUsage({ redis, clock, log });
  } catch (error) {
    await end();
    throw error;
  }
  const service = { version: VERSION, schema_sha256: await schemaHash(migrationsFolder()) };
  const engine = startEngine({
    ...{ config, foundation, sql, behind, reader, quotaSql, live, webhook, log, clock, service },
    pace: gate.gate.machines,
  });
  const stopEngine = async (): Promise<void> => {
    await engine.stop();
    await gate.close();
    await end();
  };
  const seals = openSealWatch({ sql: reader });
  try {
    const parts = { config, engine, foundation, gate, seals, streams, sql, reader, log, clock };
    const app = createApp(servicesOf(parts));
    const { url, close } = await listen(app, config);
    // Only now: why a service does not start is told in one line.
    if (config.mode === "production" && live.state() === "none") {
      log.warn("no Redis is configured: live usage is known to this process alone, so run one");
    }
    const stop = async (): Promise<void> => {
      // First: who waits for events is a request in flight, too, and so is who does not read them.
      seals.close();
      streams.close();
      await close();
      await stopEngine();
    };
    const { appender } = engine.flow;
    return { url, appender, token: tokens(foundation), stop };
  } catch (error) {
    await stopEngine();
    throw error;
  }
}

interface Parts {
  config: Config;
  engine: Engine;
  foundation: Foundation;
  gate: OpenGate;
  seals: SealWatch;
  streams: Streams;
  sql: Sql;
  reader: Sql;
  log: Logger;
  clock: Clock;
}

function servicesOf({
  config,
  engine,
  foundation,
  gate: { gate, standings },
  seals,
  streams,
  sql,
  reader,
  log,
  clock,
}: Parts): Parameters<typeof createApp>[0] {
  const { background, flow, guard, metrics } = engine;
  const { anchors, rollups, sealLag } = background;
  return {
    flow,
    control: {
      ...flow,
      closeDelayDays: engine.finishing.closeDelayDays,
      issuers: foundation.issuers,
      sql,
      hash: sha256,
    },
    exports: { ...flow, sql, files: foundation.exports, clock, prices: config.exports.prices },
    feeding: {
      ...{ sql: reader, archive: foundation.archive, seals },
      creditMinutes: creditMinutesOf(config),
    },
    streams,
    months: { finishing: engine.finishing, page: statementPage },
    reading: { sql: reader, clock },
    serving: {
      sql: reader,
      archive: foundation.archive,
      published: openPublished({
        ...{ sql: reader, archive: foundation.archive, signerFor: flow.keyring.signerFor },
        policy: config.witnessPolicy,
      }),
      visibility: openVisibility({ sql: reader, writer: sql, guard, clock }),
      hash: sha256,
    },
    gate,
    oversight: { sql, standings },
    reconciliation: {
      ...{ ...flow, sql, clock },
      secrets: hookSecrets(config.reconciliation),
      lookbackMs: config.reconciliation.pullLookbackMs,
      monthLookbackMs: config.reconciliation.pullMonthLookbackMs,
    },
    observer: {
      ...metrics,
      failed: (error, id) => log.error({ err: error, id }, "http, answered 500"),
      postponed: (error) => log.warn({ err: error }, "http, answered busy"),
      brokenOff: (error) => log.error({ err: error }, "http, answer broken off"),
    },
    ready: watchReadiness({
      ...{ sql, guard, rollups, sealLag, anchors },
      reviewsOverdue: background.reviewsOverdue,
      surroundings: background.surroundings,
      lateExports: background.lateExports,
      signs: () => foundation.keys.available(),
      redis: flow.quota.live.state,
      migrations: migrationsFolder(),
    }),
    metrics: metrics.text,
    version: VERSION,
  };
}

function creditMinutesOf({ creditMinutes }: Config): bigint | undefined {
  return creditMinutes === undefined ? undefined : BigInt(creditMinutes);
}

function tokens({ issuerKey }: Foundation): Service["token"] {
  return async (roles, subject = "local") => {
    if (issuerKey === undefined) throw new ConfigError("tokens come from the configured issuers");
    const grants = roles.map((role) => ({ role, logs: "*", namespaces: "*" }) as const);
    return await localToken(issuerKey, grants, { subject });
  };
}

/** What the configuration says about reconciliation: where platforms are asked, and what may pass. */
import { z } from "zod";
import { ConfigError } from "./config-error.ts";
import { readJson, readText } from "./config-files.ts";
import { webAddress, wholeNumber } from "./config-value.ts";
import { ANOMALY_BOUNDS, type AnomalyBounds } from "./core/anomaly.ts";
import type { Bounds } from "./core/match.ts";
import { IntegerText, LogId, PositiveText } from "./core/unit.ts";

const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000];

/** To be spread into the shape of the whole environment. */
export const ReconciliationEnvironment = {
  GITLAB_FILE: z.string().min(1).optional(),
  PULL_INTERVAL_SECONDS: wholeNumber(60, 86_400).default(3_600),
  PULL_LOOKBACK_HOURS: wholeNumber(1, 8_760).default(24),
  PULL_MONTH_LOOKBACK_DAYS: wholeNumber(1, 365).default(90),
  RECONCILE_TOLERANCE_SECONDS: wholeNumber(0, 3_600).default(5),
  RECONCILE_GRACE_HOURS: wholeNumber(1, 720).default(24),
  RECONCILE_TIMEOUT_MINUTES: wholeNumber(1, 44_640).default(1_440),
  RECONCILE_CLOCK_OFFSET_SECONDS: wholeNumber(1, 86_400).default(60),
  RECONCILE_JUMP_FACTOR: wholeNumber(2, 1_000_000).default(10),
  RECONCILE_JUMP_FLOOR_MINUTES: wholeNumber(0, 999_999_999).default(10_000),
  RECONCILE_ALARM_DAYS: wholeNumber(1, 365).default(3),
};

const Values = z.object(ReconciliationEnvironment);

/** The installation of one log. */
interface PlatformConfig {
  log: string;
  /** Where its jobs are pulled from; undefined: they come by webhooks and uploads alone. */
  pull: { url: string; token: string } | undefined;
  /** What its webhooks say as X-Gitlab-Token. */
  webhookSecret: string | undefined;
  /** Jobs that a runner has at once at most, by its number. */
  capacity: ReadonlyMap<string, bigint>;
}

export interface ReconciliationConfig {
  platforms: readonly PlatformConfig[];
  pullIntervalMs: number;
  /** A walk reads jobs that were made so long before what is covered. */
  pullLookbackMs: number;
  /** Of the walk over a month's end. */
  pullMonthLookbackMs: number;
  bounds: Bounds;
  anomalies: AnomalyBounds;
  /** A break that stands open for longer is an alarm. */
  alarmMs: number;
}

/** @throws ConfigError as `platformsOf` */
export function reconciliationOf(values: z.infer<typeof Values>): ReconciliationConfig {
  return {
    platforms: values.GITLAB_FILE === undefined ? [] : platformsOf(values.GITLAB_FILE),
    pullIntervalMs: values.PULL_INTERVAL_SECONDS * SECOND,
    pullLookbackMs: values.PULL_LOOKBACK_HOURS * HOUR,
    pullMonthLookbackMs: values.PULL_MONTH_LOOKBACK_DAYS * DAY,
    bounds: {
      tolerance_ms: BigInt(values.RECONCILE_TOLERANCE_SECONDS * SECOND),
      grace_ms: values.RECONCILE_GRACE_HOURS * HOUR,
    },
    anomalies: {
      ...ANOMALY_BOUNDS,
      timeout_ms: BigInt(values.RECONCILE_TIMEOUT_MINUTES * MINUTE),
      jump_factor: BigInt(values.RECONCILE_JUMP_FACTOR),
      jump_floor_minutes: BigInt(values.RECONCILE_JUMP_FLOOR_MINUTES),
      clock_offset_ms: BigInt(values.RECONCILE_CLOCK_OFFSET_SECONDS * SECOND),
    },
    alarmMs: values.RECONCILE_ALARM_DAYS * DAY,
  };
}

const LOOPBACK = /^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])[:/]/;

/** One log of GITLAB_FILE. What is asked with a token is asked by https, unless it is this machine. */
const Platform = z
  .strictObject({
    log: LogId,
    url: webAddress(/^https?$/)
      .refine((url) => url.startsWith("https:") || LOOPBACK.test(`${url}/`), "https")
      .refine((url) => !/[?#]/.test(url), "an address without query")
      .optional(),
    token_file: z.string().min(1).optional(),
    webhook_secret_file: z.string().min(1).optional(),
    capacity: z.record(IntegerText, PositiveText).default({}),
  })
  .refine(({ token_file, url }) => (url === undefined) === (token_file === undefined), {
    message: "url and token_file go together",
  });

/** @throws ConfigError when a file cannot be read, does not have the shape, or names a log twice */
function platformsOf(file: string): PlatformConfig[] {
  const listed = readJson(file, z.array(Platform).min(1));
  const logs = listed.map(({ log }) => log);
  if (new Set(logs).size < logs.length) throw new ConfigError(`${file}: a log twice`);
  return listed.map(({ capacity, log, token_file, url, webhook_secret_file }) => ({
    log,
    pull:
      url === undefined || token_file === undefined
        ? undefined
        : { url: url.replace(/\/+$/, ""), token: secretIn(token_file) },
    webhookSecret: webhook_secret_file === undefined ? undefined : secretIn(webhook_secret_file),
    capacity: new Map(Object.entries(capacity).map(([id, jobs]) => [id, BigInt(jobs)])),
  }));
}

const SECRET = /^[\x21-\x7e]{8,1024}$/;

/** It goes into a header. Of one that cannot nothing is said but its file. */
function secretIn(file: string): string {
  const secret = readText(file).trim();
  if (!SECRET.test(secret)) throw new ConfigError(`${file}: not 8 to 1,024 letters without spaces`);
  return secret;
}

/** By log, of those whose webhooks are heard. */
export function hookSecrets({ platforms }: ReconciliationConfig): ReadonlyMap<string, string> {
  const known = platforms.flatMap(({ log, webhookSecret }) => {
    return webhookSecret === undefined ? [] : [[log, webhookSecret] as const];
  });
  return new Map(known);
}

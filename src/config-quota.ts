/** What the configuration says about live quota: where live usage is kept, and what is done without. */
import { z } from "zod";
import { ConfigError } from "./config-error.ts";
import { webAddress, wholeNumber } from "./config-value.ts";
import type { RedisPlace } from "./store/live-redis.ts";

const RedisUrl = z.url({ protocol: /^rediss?$/ });
const LOOPBACK = /^(?:localhost|127\.0\.0\.1|\[::1\])$/;
const START_RESERVE_MINUTES_MAX = 60;
const MS_PER_MINUTE = 60_000;

/** To be spread into the shape of the whole environment. */
export const QuotaEnvironment = {
  REDIS_URL: RedisUrl.refine(
    isReadable,
    "what is coded by percent signs cannot be read",
  ).optional(),
  /** Some nodes of one Cluster; they name the others. */
  REDIS_CLUSTER_URLS: z
    .string()
    .transform((text) => text.split(",").map((url) => url.trim()))
    .pipe(z.array(RedisUrl).min(1))
    .refine(isOneCluster, "one scheme, user and password for all nodes, and nothing but a port")
    .optional(),
  QUOTA_WITHOUT_REDIS: z.enum(["open", "closed", "plan"]).default("plan"),
  QUOTA_START_RESERVE_MINUTES: wholeNumber(0, START_RESERVE_MINUTES_MAX).default(1),
  // What is said there is a customer's: in the clear it stays on this machine.
  WEBHOOK_URL: webAddress(/^https?$/)
    .refine(isPrivate, "https, unless it is this machine")
    .optional(),
  WEBHOOK_SECRET_FILE: z.string().min(1).optional(),
};

const Values = z.object(QuotaEnvironment);
type Values = z.infer<typeof Values>;

export interface QuotaConfig {
  /** Undefined: the embedded one, or none. */
  redis: RedisPlace | undefined;
  /** Whether pending jobs start while Redis is away: all, none, or those of plans that bill what is beyond. */
  withoutRedis: "open" | "closed" | "plan";
  /** Of job time that each start holds back until its first heartbeat. */
  startReserveMs: number;
}

/** Where notifications go; who receives them knows the secret. */
export interface WebhookConfig {
  url: string;
  secretFile: string;
}

/** @throws ConfigError where both kinds of Redis are named */
export function quotaOf(values: Values): QuotaConfig {
  return {
    redis: redisOf(values),
    withoutRedis: values.QUOTA_WITHOUT_REDIS,
    startReserveMs: values.QUOTA_START_RESERVE_MINUTES * MS_PER_MINUTE,
  };
}

function redisOf({ REDIS_URL: url, REDIS_CLUSTER_URLS: urls }: Values): RedisPlace | undefined {
  if (url !== undefined && urls !== undefined) {
    throw new ConfigError("set REDIS_URL or REDIS_CLUSTER_URLS, not both");
  }
  if (url !== undefined) return { kind: "single", url };
  return urls && { kind: "cluster", urls };
}

/** @throws ConfigError where one is set without the other: nothing is sent unsigned */
export function webhookOf(values: Values): WebhookConfig | undefined {
  const { WEBHOOK_SECRET_FILE: secretFile, WEBHOOK_URL: url } = values;
  if (url === undefined && secretFile === undefined) return undefined;
  if (url === undefined) throw new ConfigError("WEBHOOK_SECRET_FILE needs WEBHOOK_URL");
  if (secretFile === undefined) throw new ConfigError("WEBHOOK_URL needs WEBHOOK_SECRET_FILE");
  return { url, secretFile };
}

/**
 * That what the nodes are named with can be used for those that they name, too. A Cluster has no databases, and
 * an option of the first URL would be read of none.
 */
function isOneCluster(texts: readonly string[]): boolean {
  const urls = texts.filter((text) => URL.canParse(text)).map((text) => new URL(text));
  const shared = urls.map(({ password, protocol, username }) => [protocol, username, password]);
  const isBare = ({ hash, pathname, search }: URL): boolean => {
    return (pathname === "" || pathname === "/") && search === "" && hash === "";
  };
  const isOne = new Set(shared.map((parts) => JSON.stringify(parts))).size <= 1;
  return isOne && urls.every(isBare) && texts.every(isReadable);
}

function isReadable(text: string): boolean {
  if (!URL.canParse(text)) return true; // said by the shape itself
  const { password, username } = new URL(text);
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}

function isPrivate(text: string): boolean {
  if (!URL.canParse(text)) return true; // said by the shape itself
  const { hostname, protocol } = new URL(text);
  return protocol === "https:" || LOOPBACK.test(hostname);
}

/** The only reader of the environment. Bad values are refused by name; secrets are never printed. */
import { z } from "zod";
import { AccessEnvironment, type RateConfig, ratesOf } from "./config-access.ts";
import { ConfigError } from "./config-error.ts";
import { type ExportConfig, ExportEnvironment, exportsOf } from "./config-exports.ts";
import { readPolicy } from "./config-files.ts";
import {
  type QuotaConfig,
  QuotaEnvironment,
  quotaOf,
  type WebhookConfig,
  webhookOf,
} from "./config-quota.ts";
import {
  type ReconciliationConfig,
  ReconciliationEnvironment,
  reconciliationOf,
} from "./config-reconciliation.ts";
import { webAddress, wholeNumber } from "./config-value.ts";
import type { Policy } from "./core/policy.ts";

/** The key name of a signed note: no spaces, no plus (C2SP signed-note). */
const ServiceName = z.string().regex(/^[a-z0-9][a-z0-9.-]{0,62}$/);

const Environment = z.object({
  MINUTEBOOK_MODE: z.enum(["development", "production"]).optional(),
  NODE_ENV: z.string().optional(),
  HOST: z.string().min(1).default("127.0.0.1"),
  PORT: wholeNumber(0, 65_535).default(0),
  SERVICE_NAME: ServiceName.default("minutebook.localhost"),
  DATABASE_URL: z.string().startsWith("postgres").optional(),
  READER_DATABASE_URL: z.string().startsWith("postgres").optional(),
  ARCHIVE_URL: z.string().min(1).optional(),
  LOG_KEY_FILE: z.string().min(1).optional(),
  NEXT_LOG_KEY_FILE: z.string().min(1).optional(),
  FORMER_LOG_KEY_FILE: z.string().min(1).optional(),
  RECEIPT_KEY_FILE: z.string().min(1).optional(),
  NEXT_RECEIPT_KEY_FILE: z.string().min(1).optional(),
  FORMER_RECEIPT_KEY_FILE: z.string().min(1).optional(),
  SIGNER_COMMAND: z.string().min(1).optional(),
  PRINCIPAL_KEY_FILE: z.string().min(1).optional(),
  ISSUERS_FILE: z.string().min(1).optional(),
  WITNESS_POLICY_FILE: z.string().min(1).optional(),
  WITNESS_INTERVAL_SECONDS: wholeNumber(1, 86_400).default(30),
  VERIFIER_THREADS: wholeNumber(1, 64).optional(),
  CLOSE_DELAY_DAYS: wholeNumber(0, 31).default(3),
  CREDIT_COMPUTE_MINUTES: wholeNumber(1, 1_000_000).optional(),
  ...QuotaEnvironment,
  ...AccessEnvironment,
  ...ReconciliationEnvironment,
  ...ExportEnvironment,
  LOG_LEVEL: z.enum(["trace", "debug", "info", "warn", "error", "silent"]).default("info"),
});

/** Where a production service finds its parts; all of it or nothing (then all is embedded). */
export interface External {
  databaseUrl: string;
  archiveUrl: string;
  keys: KeyFiles | SignerCommand;
  principalKeyFile: string;
  issuersFile: string;
}

/** By purpose: the current key, and behind it, if there is one, the next. */
export interface KeyFiles {
  kind: "files";
  checkpoint: readonly string[];
  receipt: readonly string[];
  /** Of before, for logs that are signed with them still. */
  former: { checkpoint: string | undefined; receipt: string | undefined };
}

/** The program and its arguments. */
export interface SignerCommand {
  kind: "command";
  words: readonly [string, ...string[]];
}

export interface Config {
  mode: "development" | "production";
  host: string;
  port: number;
  serviceName: string;
  /** Undefined: the embedded default under the data folder. */
  external: External | undefined;
  readerDatabaseUrl: string | undefined;
  /** Who cosigns, and how many must have; undefined: nobody is asked, and every checkpoint is published. */
  witnessPolicy: Policy | undefined;
  witnessIntervalMs: number;
  verifierThreads: number | undefined;
  /** Whole days between a month's end and its cut-off. */
  closeDelayDays: number;
  /** Compute minutes that are one credit; undefined: nothing is shown in credits. */
  creditMinutes: number | undefined;
  quota: QuotaConfig;
  rates: RateConfig;
  /** Undefined: notifications are kept, and sent to nobody. */
  webhook: WebhookConfig | undefined;
  reconciliation: ReconciliationConfig;
  exports: ExportConfig;
  logLevel: "trace" | "debug" | "info" | "warn" | "error" | "silent";
}

const EXTERNAL = ["DATABASE_URL", "ARCHIVE_URL", "PRINCIPAL_KEY_FILE", "ISSUERS_FILE"] as const;
const KEY_FILES = ["LOG_KEY_FILE", "RECEIPT_KEY_FILE"] as const;
const OTHER_KEY_FILES = [
  "NEXT_LOG_KEY_FILE",
  "FORMER_LOG_KEY_FILE",
  "NEXT_RECEIPT_KEY_FILE",
  "FORMER_RECEIPT_KEY_FILE",
] as const;

/**
 * @throws ConfigError naming every variable that is wrong or missing
 */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const values = parsed(Environment, environment);
  const mode =
    values.MINUTEBOOK_MODE ?? (values.NODE_ENV === "production" ? "production" : "development");
  return {
    mode,
    host: values.HOST,
    port: values.PORT,
    serviceName: values.SERVICE_NAME,
    external: externalOf(values, mode),
    readerDatabaseUrl: values.READER_DATABASE_URL,
    witnessPolicy: readPolicy(values.WITNESS_POLICY_FILE),
    witnessIntervalMs: values.WITNESS_INTERVAL_SECONDS * 1_000,
    verifierThreads: values.VERIFIER_THREADS,
    closeDelayDays: values.CLOSE_DELAY_DAYS,
    creditMinutes: values.CREDIT_COMPUTE_MINUTES,
    quota: quotaOf(values),
    rates: ratesOf(values),
    webhook: webhookOf(values),
    reconciliation: reconciliationOf(values),
    exports: exportsOf(values),
    logLevel: values.LOG_LEVEL,
  };
}

type Values = z.infer<typeof Environment>;

function externalOf(values: Values, mode: Config["mode"]): External | undefined {
  const keys = keysOf(values);
  const needed = keys?.kind === "command" ? EXTERNAL : [...EXTERNAL, ...KEY_FILES];
  const missing = needed.filter((name) => values[name] === undefined);
  const { DATABASE_URL, ARCHIVE_URL, PRINCIPAL_KEY_FILE, ISSUERS_FILE } = values;
  if (
    DATABASE_URL !== undefined &&
    ARCHIVE_URL !== undefined &&
    keys !== undefined &&
    PRINCIPAL_KEY_FILE !== undefined &&
    ISSUERS_FILE !== undefined
  ) {
    return {
      databaseUrl: DATABASE_URL,
      archiveUrl: ARCHIVE_URL,
      keys,
      principalKeyFile: PRINCIPAL_KEY_FILE,
      issuersFile: ISSUERS_FILE,
    };
  }
  // Half a production set-up on top of an embedded half would look like production and not be it.
  if (missing.length < needed.length || keys !== undefined) {
    throw new ConfigError(`set these too, or none of them: ${missing.join(", ")}`);
  }
  if (mode === "production") {
    throw new ConfigError(`production needs ${needed.join(", ")}`);
  }
  return undefined;
}

/** Undefined unless the current key of each purpose is to be had. */
function keysOf(values: Values): External["keys"] | undefined {
  const { LOG_KEY_FILE: log, RECEIPT_KEY_FILE: receipt, SIGNER_COMMAND: command } = values;
  if (command !== undefined) {
    const files = [...KEY_FILES, ...OTHER_KEY_FILES].filter((name) => values[name] !== undefined);
    if (files.length === 0) return { kind: "command", words: wordsOf(command) };
    throw new ConfigError(`SIGNER_COMMAND holds all keys: do not set ${files.join(", ")}`);
  }
  if (log === undefined || receipt === undefined) return undefined;
  const { NEXT_LOG_KEY_FILE: nextLog, NEXT_RECEIPT_KEY_FILE: nextReceipt } = values;
  const former = {
    checkpoint: values.FORMER_LOG_KEY_FILE,
    receipt: values.FORMER_RECEIPT_KEY_FILE,
  };
  return {
    kind: "files",
    checkpoint: [log, ...(nextLog === undefined ? [] : [nextLog])],
    receipt: [receipt, ...(nextReceipt === undefined ? [] : [nextReceipt])],
    former,
  };
}

const Words = z.tuple([z.string().min(1)], z.string());

/** Words and no shell: nothing in them is ever expanded. */
function wordsOf(command: string): SignerCommand["words"] {
  try {
    return Words.parse(JSON.parse(command));
  } catch (error) {
    const form = 'a JSON array of words, as ["/usr/bin/signer","--slot","2"]';
    throw new ConfigError(`SIGNER_COMMAND: ${form}`, { cause: error });
  }
}

/** Of commands, each of which needs one or two: no host has to have them all. */
const Surroundings = Environment.pick({
  DATABASE_URL: true,
  READER_DATABASE_URL: true,
  SERVICE_NAME: true,
}).extend({
  OWNER_DATABASE_URL: z.string().startsWith("postgres").optional(),
  SUPERUSER_DATABASE_URL: z.string().startsWith("postgres").optional(),
  AUDITOR_DATABASE_URL: z.string().startsWith("postgres").optional(),
  MINUTEBOOK_SERVER: webAddress(/^https?$/).optional(),
  MINUTEBOOK_TOKEN: z.string().min(1).optional(),
});

export interface Surroundings {
  /** By role; the superuser's is for `bootstrap` alone. */
  databases: Readonly<
    Record<"superuser" | "owner" | "writer" | "reader" | "auditor", string | undefined>
  >;
  server: string | undefined;
  serviceName: string;
  token: string | undefined;
}

/** @throws ConfigError naming every variable that is wrong */
export function readSurroundings(environment: NodeJS.ProcessEnv = process.env): Surroundings {
  const values = parsed(Surroundings, environment);
  return {
    databases: {
      superuser: values.SUPERUSER_DATABASE_URL,
      owner: values.OWNER_DATABASE_URL,
      writer: values.DATABASE_URL,
      reader: values.READER_DATABASE_URL,
      auditor: values.AUDITOR_DATABASE_URL,
    },
    server: values.MINUTEBOOK_SERVER,
    serviceName: values.SERVICE_NAME,
    token: values.MINUTEBOOK_TOKEN,
  };
}

function parsed<T extends z.ZodType>(shape: T, environment: NodeJS.ProcessEnv): z.infer<T> {
  const { data, error, success } = shape.safeParse(environment);
  if (success) return data;
  const names = error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new ConfigError(names.join("; "));
}

/** Our own environment and more, for a process that we start. */
export function environmentWith(more: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  return { ...process.env, ...more };
}

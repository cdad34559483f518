/** What a service stands on: databases, archive, keys, issuers; its own under one folder, or given. */
import type { KeyObject } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import type { Config, External } from "../config.ts";
import { ConfigError } from "../config-error.ts";
import { readIssuers, readKeySet } from "../config-files.ts";
import {
  ensureSecretKey,
  ensureSigningKey,
  heldKeys,
  readSecretKey,
  readSigningKey,
} from "../custody.ts";
import { startRedis } from "../embedded/redis.ts";
import { findPostgres, startPostgres } from "../embedded.ts";
import { fixedKeys, type Issuer, remoteKeys } from "../flow/authenticate.ts";
import type { HeldKeys } from "../flow/key/standing.ts";
import type { Archive } from "../store/archive.ts";
import { folderArchive } from "../store/archive-folder.ts";
import { openArchive } from "../store/archive-location.ts";
import { connect } from "../store/connect.ts";
import type { ExportFiles } from "../store/export-files.ts";
import { exportsIn, openExports } from "../store/export-location.ts";
import type { RedisPlace } from "../store/live-redis.ts";
import { migrate } from "../store/migrations.ts";
import { CommandError } from "./failure.ts";
import { DATA_DEFAULT, type DataFolder, dataFolder, migrationsFolder } from "./folder.ts";
import { localIssuer } from "./issuer.ts";
import { openSigner } from "./signer.ts";

export interface Foundation {
  writerUrl: string;
  readerUrl: string;
  archive: Archive;
  exports: ExportFiles;
  keys: HeldKeys;
  principalKey: Uint8Array;
  issuers: Issuer[];
  /** Of the embedded default only. */
  issuerKey?: KeyObject;
  /** Likewise, where the configuration names none and this machine has the program. */
  redis?: RedisPlace;
  /** Ends what was started for this foundation. */
  stop(): Promise<void>;
}

/**
 * @param data the folder of the embedded default, used if the configuration names nothing external
 * @param log gets a line where something takes time or is not where one would look for it
 * @throws ConfigError, EmbeddedError, MigrationError
 */
export async function layFoundation(
  config: Config,
  data: string,
  log: (line: string) => void,
): Promise<Foundation> {
  if (config.external !== undefined) {
    return await external(config.external, config, log);
  }
  const foundation = await embedded(data, config, log);
  return config.quota.redis === undefined ? await withRedis(foundation, data, log) : foundation;
}

/** What writes to logs beside the service, or in its place while it is down. */
export type Ground = Pick<Foundation, "writerUrl" | "archive" | "keys" | "stop">;

/**
 * As `layFoundation`, but a data folder must be there, and goes before the environment where it is
 * named; the server in it may be running already.
 */
export async function findGround(
  config: Config,
  data: string | undefined,
  log: (line: string) => void,
): Promise<Ground> {
  if (config.external !== undefined && data === undefined) {
    return await external(config.external, config, log);
  }
  const folder = resolve(data ?? DATA_DEFAULT);
  const places = dataFolder(folder);
  if (!existsSync(places.archive)) {
    throw new CommandError(
      "no-database",
      `no archive in ${folder}: say --data, or set DATABASE_URL`,
    );
  }
  const running = await findPostgres(places.postgres);
  if (running === undefined) return await embedded(folder, config, log);
  return {
    writerUrl: running.writer,
    archive: folderArchive(places.archive),
    keys: ownKeys(places.keys),
    stop: async () => undefined,
  };
}

async function embedded(
  data: string,
  { exports }: Config,
  log: (line: string) => void,
): Promise<Foundation> {
  const places = dataFolder(resolve(data));
  await mkdir(places.archive, { recursive: true });
  const issuerKey = ensureSigningKey(places.keys.issuer);
  const postgres = await startPostgres({ folder: places.postgres, log });
  try {
    const sql = connect(postgres.urls.owner, { max: 1, name: "minutebook-migrate" });
    const { applied } = await migrate({ sql, folder: migrationsFolder(), appliedBy: "embedded" });
    await sql.end();
    if (applied.length > 0) log(`migrations applied: ${applied.join(", ")}`);
    return {
      writerUrl: postgres.urls.writer,
      readerUrl: postgres.urls.reader,
      archive: folderArchive(places.archive),
      exports: await exportsAt(exports.url ?? exportsIn(places.archive)),
      keys: ownKeys(places.keys),
      principalKey: ensureSecretKey(places.keys.principal),
      issuers: [localIssuer(issuerKey)],
      issuerKey,
      stop: () => postgres.stop(),
    };
  } catch (error) {
    await postgres.stop();
    throw error;
  }
}

/** After the database, whose lock keeps a folder to one service: an old Redis in it is nobody's. */
async function withRedis(
  foundation: Foundation,
  data: string,
  log: (line: string) => void,
): Promise<Foundation> {
  try {
    const redis = await startRedis({ folder: dataFolder(resolve(data)).redis, log });
    if (redis === undefined) return foundation;
    const stop = async (): Promise<void> => {
      await Promise.all([redis.stop(), foundation.stop()]);
    };
    return { ...foundation, redis: { kind: "single", url: redis.url }, stop };
  } catch (error) {
    await foundation.stop();
    throw error;
  }
}

/** The current keys are made with the folder; the others are put there by whoever rotates. */
function ownKeys(files: DataFolder["keys"]): HeldKeys {
  const found = (file: string): KeyObject[] => (existsSync(file) ? [readSigningKey(file)] : []);
  const [checkpoint] = found(files.formerLog);
  const [receipt] = found(files.formerReceipt);
  return heldKeys({
    checkpoint: [ensureSigningKey(files.log), ...found(files.nextLog)],
    receipt: [ensureSigningKey(files.receipt), ...found(files.nextReceipt)],
    former: { checkpoint, receipt },
  });
}

async function external(
  given: External,
  { exports, readerDatabaseUrl }: Config,
  log: (line: string) => void,
): Promise<Foundation> {
  const foundation = {
    writerUrl: given.databaseUrl,
    readerUrl: readerDatabaseUrl ?? given.databaseUrl,
    archive: await archiveAt(given.archiveUrl),
    exports: await exportsAt(exports.url ?? exportsIn(given.archiveUrl)),
    principalKey: readSecretKey(given.principalKeyFile),
    issuers: readIssuers(given.issuersFile).map(({ jwks, ...issuer }) => ({
      ...issuer,
      key: "uri" in jwks ? remoteKeys(jwks.uri) : fixedKeys(readKeySet(jwks.file)),
    })),
  };
  // Last: nothing that fails after it leaves a command running.
  const { keys, close } = await keysOf(given.keys, log);
  return { ...foundation, keys, stop: close };
}

async function keysOf(
  given: External["keys"],
  log: (line: string) => void,
): Promise<{ keys: HeldKeys; close: Foundation["stop"] }> {
  if (given.kind === "files") {
    const checkpoint = given.checkpoint.map(readSigningKey);
    const receipt = given.receipt.map(readSigningKey);
    const [formerLog, formerReceipt] = [given.former.checkpoint, given.former.receipt];
    const former = {
      checkpoint: formerLog === undefined ? undefined : readSigningKey(formerLog),
      receipt: formerReceipt === undefined ? undefined : readSigningKey(formerReceipt),
    };
    return { keys: heldKeys({ checkpoint, receipt, former }), close: async () => undefined };
  }
  const failed = ({ message }: Error): void => log(`${message}; it is started again`);
  const signer = await openSigner({ words: given.words, failed });
  return { keys: signer, close: () => signer.close() };
}

async function archiveAt(url: string): Promise<Archive> {
  return await opened("ARCHIVE_URL", () => openArchive(url));
}

async function exportsAt(url: string): Promise<ExportFiles> {
  return await opened("EXPORT_URL", () => openExports(url));
}

async function opened<T>(variable: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    throw new ConfigError(`${variable}: ${error instanceof Error ? error.message : ""}`, {
      cause: error,
    });
  }
}

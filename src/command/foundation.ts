/** What a service stands on: databases, archive, keys, issuers; its own under one folder, or given. */
import type { KeyObject } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import { type Config, ConfigError, type External, readIssuers, readKeySet } from "../config.ts";
import { ensureSecretKey, ensureSigningKey, readSecretKey, readSigningKey } from "../custody.ts";
import { startPostgres } from "../embedded.ts";
import { fixedKeys, type Issuer, remoteKeys } from "../flow/authenticate.ts";
import type { Archive } from "../store/archive.ts";
import { folderArchive } from "../store/archive-folder.ts";
import { openArchive } from "../store/archive-location.ts";
import { connect } from "../store/connect.ts";
import { migrate } from "../store/migrations.ts";
import { dataFolder, migrationsFolder } from "./folder.ts";
import { localIssuer } from "./issuer.ts";

export interface Foundation {
  writerUrl: string;
  readerUrl: string;
  archive: Archive;
  logKey: KeyObject;
  principalKey: Uint8Array;
  issuers: Issuer[];
  /** Of the embedded default only. */
  issuerKey?: KeyObject;
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
  return config.external === undefined
    ? await embedded(data, log)
    : await external(config.external, config.readerDatabaseUrl);
}

async function embedded(data: string, log: (line: string) => void): Promise<Foundation> {
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
      logKey: ensureSigningKey(places.keys.log),
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

async function external(given: External, readerUrl: string | undefined): Promise<Foundation> {
  return {
    writerUrl: given.databaseUrl,
    readerUrl: readerUrl ?? given.databaseUrl,
    archive: await archiveAt(given.archiveUrl),
    logKey: readSigningKey(given.logKeyFile),
    principalKey: readSecretKey(given.principalKeyFile),
    issuers: readIssuers(given.issuersFile).map(({ jwks, ...issuer }) => ({
      ...issuer,
      key: "uri" in jwks ? remoteKeys(jwks.uri) : fixedKeys(readKeySet(jwks.file)),
    })),
    stop: async () => undefined,
  };
}

async function archiveAt(url: string): Promise<Archive> {
  try {
    return await openArchive(url);
  } catch (error) {
    throw new ConfigError(`ARCHIVE_URL: ${error instanceof Error ? error.message : ""}`, {
      cause: error,
    });
  }
}

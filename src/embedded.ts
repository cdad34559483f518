/**
 * The PostgreSQL that Minutebook brings along, for machines that have none: a real server of real
 * binaries, in a folder of the caller's choice, stopped when we end, in whatever way we end.
 */
import { join } from "node:path";
import { serverAccount } from "./embedded/account.ts";
import { findBinaries } from "./embedded/binaries.ts";
import {
  findData,
  findPasswords,
  openCluster,
  type Passwords,
  publicFolder,
  removeCluster,
} from "./embedded/cluster.ts";
import { portOf, startPostmaster, untilFree } from "./embedded/postmaster.ts";
import { bootstrapRoles } from "./store/roles.ts";

const DATABASE = "minutebook";

export interface Urls {
  superuser: string;
  owner: string;
  writer: string;
  reader: string;
  auditor: string;
}

export interface Embedded {
  /** On 127.0.0.1; another one at each start. */
  port: number;
  /** Path of the unix socket, for the server's account and root. */
  socket: string;
  database: string;
  /** The cluster's folder: elsewhere than asked for if the server could not enter that. */
  data: string;
  /** All lead to `database`, as `postgres` and as the four roles of store/roles. */
  urls: Urls;
  stop(): Promise<void>;
  /** kill -9 of the server, for tests. */
  kill9(): Promise<void>;
}

/**
 * Starts the server of a folder; the first time makes cluster, roles and database (about 2 s).
 * What a crash left behind is recovered.
 *
 * @param options.folder made if missing; kept between runs
 * @param options.settings server settings beyond the durable defaults
 * @param options.log gets a line where something is not where one would look for it
 * @throws {EmbeddedError} `no-binaries`, `data-folder-in-use`, `data-folder-unusable`, `start-failed`
 */
export async function startPostgres(options: {
  folder: string;
  settings?: Record<string, string>;
  log?: (line: string) => void;
}): Promise<Embedded> {
  const { folder, settings = {}, log = () => undefined } = options;
  const account = serverAccount();
  const binaries = await findBinaries(account, publicFolder(account));
  const cluster = await openCluster(folder, account, binaries, log);
  const { port, stop, kill } = await startPostmaster(binaries.postgres, cluster, settings);
  const { passwords, data } = cluster;
  try {
    await bootstrap(port, passwords);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    port,
    socket: join(cluster.socket, `.s.PGSQL.${port}`),
    database: DATABASE,
    data,
    urls: urlsOf(port, passwords),
    stop,
    kill9: kill,
  };
}

/**
 * The running server of a folder, for commands beside the process that started it; undefined where
 * none runs.
 */
export async function findPostgres(folder: string): Promise<Urls | undefined> {
  const [data, passwords] = [await findData(folder), await findPasswords(folder)];
  if (data === undefined || passwords === undefined) return undefined;
  const port = await portOf(data);
  return port === undefined ? undefined : urlsOf(port, passwords);
}

/**
 * Removes the cluster of a folder for good, wherever it lies; leaves what is not ours.
 * Throws `data-folder-in-use` while its server runs.
 */
export async function removePostgres(folder: string): Promise<void> {
  const data = await findData(folder);
  if (data === undefined) return;
  await untilFree(data);
  await removeCluster(folder, serverAccount());
}

/** At each start, so that a first start that was killed half way is finished by the next. */
async function bootstrap(port: number, passwords: Passwords): Promise<void> {
  await bootstrapRoles(url("postgres", passwords.superuser, port, "postgres"), {
    database: DATABASE,
    passwords: {
      minutebook_owner: passwords.owner,
      minutebook_writer: passwords.writer,
      minutebook_reader: passwords.reader,
      minutebook_auditor: passwords.auditor,
    },
  });
}

function urlsOf(port: number, passwords: Passwords): Urls {
  return {
    superuser: url("postgres", passwords.superuser, port, DATABASE),
    owner: url("minutebook_owner", passwords.owner, port, DATABASE),
    writer: url("minutebook_writer", passwords.writer, port, DATABASE),
    reader: url("minutebook_reader", passwords.reader, port, DATABASE),
    auditor: url("minutebook_auditor", passwords.auditor, port, DATABASE),
  };
}

function url(user: string, password: string, port: number, database: string): string {
  return `postgres://${user}:${password}@127.0.0.1:${port}/${database}`;
}

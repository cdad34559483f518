/** The database that a command works on: named by the environment, or embedded in a data folder. */
import { readSurroundings } from "../config.ts";
import { findData } from "../embedded/cluster.ts";
import { findPostgres, startPostgres } from "../embedded.ts";
import { connect, type Sql } from "../store/connect.ts";
import { CommandError } from "./failure.ts";
import { DATA_DEFAULT, type DataFolder, dataFolder } from "./folder.ts";

type Role = "owner" | "reader";

/** A command reads all there is, and nobody waits for it. */
const UNLIMITED = { statement: 0, idle: 0 };

/**
 * A data folder that is named goes before the environment. An embedded server that does not run is
 * started for as long as the work takes; a folder is never made: a wrong path must not pass for an
 * empty log.
 *
 * @throws CommandError `no-database`
 */
export async function withDatabase<T>(
  role: Role,
  { data }: { data?: string },
  work: (sql: Sql) => Promise<T>,
): Promise<T> {
  const place = placeOf(role, data);
  if ("url" in place) return await within(place.url, work);
  const { postgres: folder } = place;
  const running = await findPostgres(folder);
  if (running !== undefined) return await within(running[role], work);
  if ((await findData(folder)) === undefined) {
    const variable = `${role.toUpperCase()}_DATABASE_URL`;
    throw new CommandError("no-database", `none in ${folder}: say --data, or set ${variable}`);
  }
  const log = (line: string) => process.stderr.write(`${line}\n`);
  const started = await startPostgres({ folder, log });
  try {
    return await within(started.urls[role], work);
  } finally {
    await started.stop();
  }
}

/** Where a command works: at a URL of the environment, or in a data folder. */
export function placeOf(role: Role, data: string | undefined): { url: string } | DataFolder {
  const url = readSurroundings().databases[role];
  return data === undefined && url !== undefined ? { url } : dataFolder(data ?? DATA_DEFAULT);
}

async function within<T>(url: string, work: (sql: Sql) => Promise<T>): Promise<T> {
  const sql = connect(url, { max: 1, name: "minutebook-command", limits: UNLIMITED });
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

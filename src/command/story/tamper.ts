/** What an attacker with a disk or a superuser's password would do, done to copies. */
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { BESIDE_TABLES } from "../../core/beside.ts";
import { bundlePath, TILE_WIDTH } from "../../core/tile.ts";
import { CLOSED_TABLES } from "../../store/closed.ts";
import { connect, type Sql } from "../../store/connect.ts";
import { migrate } from "../../store/migrations.ts";

const DIGIT = /("compute_ms":")([0-9])/;

/**
 * Copies a log's archive and changes one digit of one entry's charge in the copy.
 * @throws Error when the entry is not in the bundle or is no usage
 */
export async function tamperArchive(options: {
  archive: string;
  copy: string;
  log: string;
  index: bigint;
  size: bigint;
}): Promise<void> {
  const { archive, copy, log, index, size } = options;
  await cp(join(archive, log), join(copy, log), { recursive: true });
  const number = index / BigInt(TILE_WIDTH);
  const whole = (number + 1n) * BigInt(TILE_WIDTH) <= size;
  const width = whole ? TILE_WIDTH : Number(size % BigInt(TILE_WIDTH));
  const path = join(copy, log, bundlePath(number, width));
  const bytes = await readFile(path);
  await writeFile(path, changed(bytes, Number(index % BigInt(TILE_WIDTH))));
}

/** Same length, so that only the digit is wrong and not the frame around it. */
function changed(bundle: Buffer, position: number): Buffer {
  let at = 0;
  for (let i = 0; i < position; i += 1) at += 2 + bundle.readUInt16BE(at);
  const end = at + 2 + bundle.readUInt16BE(at);
  const entry = bundle.subarray(at + 2, end).toString("latin1");
  const other = entry.replace(DIGIT, (_, name: string, digit: string) => name + another(digit));
  if (other === entry) throw new Error("tamper: no charge in this entry");
  return Buffer.concat([
    bundle.subarray(0, at + 2),
    Buffer.from(other, "latin1"),
    bundle.subarray(end),
  ]);
}

const another = (digit: string): string => (digit === "9" ? "8" : String(Number(digit) + 1));

/** In the order in which they can be filled; views are refreshed, not copied. */
const TABLES = [
  "entries",
  "heads",
  "jobs",
  "reports",
  "keys",
  "seals",
  "checkpoints",
  "usage_buckets",
  "watermarks",
  ...BESIDE_TABLES,
  ...CLOSED_TABLES,
];
const VIEWS = [
  "open_namespace_monthly_usages",
  "open_project_monthly_usages",
  "open_gitlab_hosted_runner_monthly_usages",
] as const;

/**
 * Copies the database beside the original, as superuser, and changes one digit of one entry's charge in
 * the copy: triggers do not stop a superuser, the check must.
 * @returns a function that removes the copy
 */
export async function tamperDatabase(options: {
  superuserUrl: string;
  migrations: string;
  name: string;
  log: string;
  index: bigint;
}): Promise<() => Promise<void>> {
  const { superuserUrl, migrations, name, log, index } = options;
  const source = connect(superuserUrl, { max: 1 });
  await source`drop database if exists ${source(name)} with (force)`;
  await source`create database ${source(name)} owner minutebook_owner`;
  const copy = connect(urlOf(superuserUrl, name), { max: 2 });
  try {
    await migrate({ sql: copy, folder: migrations, appliedBy: "story" });
    await copyTables(copy, superuserUrl);
    await copy`alter table entries disable trigger all`;
    await copy`
      update entries
      set compute_ms = compute_ms + 1
      where log = ${log} and index = ${index}
    `;
    await copy`alter table entries enable always trigger entries_append_only`;
  } finally {
    await copy.end();
  }
  return async () => {
    await source`drop database ${source(name)} with (force)`;
    await source.end();
  };
}

/** Row by row through the server itself: COPY would need a stream for each table. */
async function copyTables(copy: Sql, superuserUrl: string): Promise<void> {
  const { hostname, password, pathname, port, username } = new URL(superuserUrl);
  await copy.unsafe(`
    create extension postgres_fdw;
    create server original
      foreign data wrapper postgres_fdw
      options (host '${hostname}', port '${port}', dbname '${pathname.slice(1)}');
    create user mapping for current_user
      server original
      options (user '${username}', password '${password}');
    create schema original;
    import foreign schema public limit to (${TABLES.join(", ")}) from server original into original;
    ${TABLES.map((table) => `insert into public.${table} select * from original.${table};`).join("\n")}
    drop extension postgres_fdw cascade;
    drop schema original cascade;
  `);
  for (const view of VIEWS) await copy`refresh materialized view ${copy(view)}`;
}

/** The same server and account, another database. */
export function urlOf(url: string, database: string): string {
  const other = new URL(url);
  other.pathname = `/${database}`;
  return other.href;
}

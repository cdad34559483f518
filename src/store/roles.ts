/**
 * The four login roles, the one behind them, and the database they share, made by a superuser once per cluster.
 * What each may do with a table is granted by the migration that creates the table.
 */
import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import { connect, type Sql } from "./connect.ts";

/**
 * owner: runs migrations, and nothing else. writer: the service. reader: the service's reading
 * half and `check`. auditor: the auditor's own connection. None is a superuser.
 */
export const ROLES = [
  "minutebook_owner",
  "minutebook_writer",
  "minutebook_reader",
  "minutebook_auditor",
] as const;
export type Role = (typeof ROLES)[number];

/** Nobody signs in as it: reader and writer become it for what a viewer asks (store/viewer.ts). */
const VIEWER = "minutebook_viewer";

/**
 * Makes what is missing of roles and database, and shuts PUBLIC out. Safe to repeat; of a role that
 * exists only the password is set, and only if one is given.
 *
 * @param superuserUrl any database of the cluster
 * @param options.passwords a role without one can sign in only by what pg_hba.conf trusts besides
 *   (certificate, peer, a cloud's identity)
 */
export async function bootstrapRoles(
  superuserUrl: string,
  options: { database: string; passwords: Partial<Record<Role, string>> },
): Promise<void> {
  const { database, passwords } = options;
  await within(superuserUrl, async (sql) => {
    for (const role of ROLES) await ensureRole(sql, role, passwords[role]);
    await ensureViewer(sql);
    const [found] = await sql`select from pg_database where datname = ${database}`;
    if (found === undefined) {
      await sql`create database ${sql(database)} owner minutebook_owner template template0`;
    }
    await restrictDatabase(sql, database);
  });
  const inside = new URL(superuserUrl);
  inside.pathname = `/${encodeURIComponent(database)}`;
  await within(inside.href, async (sql) => {
    await sql`revoke all on schema public from public`;
    await sql`grant usage on schema public to ${sql([...ROLES, VIEWER])}`;
  });
}

/**
 * Only the four roles may connect, and nobody but the owner makes temporary tables: a function in
 * pg_temp could stand in for one of ours. A copy of a database does not inherit this.
 */
export async function restrictDatabase(sql: Sql, database: string): Promise<void> {
  await sql`revoke all on database ${sql(database)} from public`;
  await sql`grant connect on database ${sql(database)} to ${sql(ROLES)}`;
}

/** Not inherited: whoever has not become the viewer has nothing of it. */
async function ensureViewer(sql: Sql): Promise<void> {
  const [found] = await sql`select from pg_roles where rolname = ${VIEWER}`;
  if (found === undefined) await sql`create role ${sql(VIEWER)} nologin`;
  await sql`
    grant ${sql(VIEWER)} to minutebook_writer, minutebook_reader with inherit false, set true`;
}

async function ensureRole(sql: Sql, role: Role, password: string | undefined): Promise<void> {
  const [found] = await sql`select from pg_roles where rolname = ${role}`;
  if (found === undefined) await sql`create role ${sql(role)} login`;
  if (password === undefined) return;
  await sql.unsafe(`alter role ${role} password '${scramVerifier(password)}'`);
}

/**
 * What PostgreSQL stores for a SCRAM-SHA-256 password (RFC 5803), computed here: the password
 * itself never travels in a statement that a server might log.
 */
function scramVerifier(password: string): string {
  const iterations = 4096;
  const salt = randomBytes(16);
  const salted = pbkdf2Sync(password, salt, iterations, 32, "sha256");
  const hmac = (text: string) => createHmac("sha256", salted).update(text).digest();
  const stored = createHash("sha256").update(hmac("Client Key")).digest("base64");
  const server = hmac("Server Key").toString("base64");
  return `SCRAM-SHA-256$${iterations}:${salt.toString("base64")}$${stored}:${server}`;
}

async function within(url: string, work: (sql: Sql) => Promise<void>): Promise<void> {
  const sql = connect(url, { max: 1, name: "minutebook-bootstrap" });
  try {
    await work(sql);
  } finally {
    await sql.end();
  }
}

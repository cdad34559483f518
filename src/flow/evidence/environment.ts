/**
 * What the service runs as, and what the database guards the log with: said on each log whenever it is no
 * longer what the newest entry says. So an auditor sees every change, and that there was none.
 */
import { createHash } from "node:crypto";
import type { Body } from "../../core/entry.ts";
import { encodeBase64 } from "../../core/text.ts";
import { readCatalog } from "../../store/catalog.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { newestOfLogs, readNewest } from "../../store/registers.ts";
import type { Random } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import { decodedAs } from "../usage/show.ts";

export type Environment = Omit<Body<"environment">, "salt">;
export type Member = keyof Environment;

/** What does not change while a process runs. Hashes are base64. */
export type Build = Pick<Environment, "dependencies_sha256" | "schema_sha256" | "version">;

/** What may change meanwhile. */
export type Guards = Pick<Environment, "grants_sha256" | "triggers_sha256">;

/** Two digests over the catalog's lines, each with a newline. */
export async function readGuards(sql: Sql): Promise<Guards> {
  const { grants, guards } = await readCatalog(sql);
  return { grants_sha256: digestOf(grants), triggers_sha256: digestOf(guards) };
}

function digestOf(lines: readonly string[]): string {
  const sha256 = createHash("sha256");
  for (const line of lines) sha256.update(`${line}\n`);
  return encodeBase64(sha256.digest());
}

/** Members that are not the same; all of them where nothing was said before. */
export function changed(before: Partial<Environment> | undefined, now: Environment): Member[] {
  return MEMBERS.filter((member) => before?.[member] !== now[member]);
}

const MEMBERS = [
  "dependencies_sha256",
  "grants_sha256",
  "schema_sha256",
  "triggers_sha256",
  "version",
] as const satisfies Member[];

export interface Environing {
  /** As writer. */
  sql: Sql;
  appender: Appender;
  random: Random;
}

/** Logs on which something else is said, or nothing: those that a statement is due on. */
export async function unsaid(
  sql: Sql,
  now: Environment,
  members: readonly Member[],
): Promise<string[]> {
  const logs = await newestOfLogs(sql, "environment");
  return logs.filter(({ bytes }) => differs(bytes, now, members)).map(({ log }) => log);
}

function differs(
  bytes: Uint8Array | null | undefined,
  now: Environment,
  members: readonly Member[],
): boolean {
  if (bytes === null || bytes === undefined) return true;
  const { body } = decodedAs("environment", bytes);
  return changed(body, now).some((member) => members.includes(member));
}

/**
 * Says it, unless another process has. @param members those that count: a process that was started before
 * others does not take turns with them about what they are built of
 * @returns members that are new on this log; none where nothing was written
 */
export async function sayEnvironment(
  { appender, random }: Environing,
  log: string,
  now: Environment,
  members: readonly Member[],
): Promise<Member[]> {
  let news: Member[] = [];
  await appender.control(log, "environment", async (_, __, tx) => {
    const newest = await newestOf(tx, log);
    if (newest !== undefined && !differs(newest.bytes, now, members)) return newest.index;
    news = changed(newest && decodedAs("environment", newest.bytes).body, now);
    return { ...now, salt: salt(random) };
  });
  return news;
}

function newestOf(tx: Transaction, log: string): ReturnType<typeof readNewest> {
  return readNewest(tx, log, "environment");
}

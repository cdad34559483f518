/**
 * Each day's rows of the access log become a digest on the log that they are about: whoever changes or takes away
 * one later contradicts an entry. A day is closed first, by the lock that its rows are written under, and then read.
 */
import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { canonical } from "../../core/json.ts";
import { encodeBase64 } from "../../core/text.ts";
import {
  closeDays,
  daysToDigest,
  isDayClosed,
  missingAccess,
  readAccess,
  type StoredAccess,
} from "../../store/access-log.ts";
import type { Sql } from "../../store/connect.ts";
import { findDigest, readNewest } from "../../store/registers.ts";
import type { Random } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import { decodedAs } from "../usage/show.ts";

/** What was read or changed, as it is hashed and shown. */
export type AccessLine = Readonly<
  Record<
    | "at"
    | "by"
    | "day"
    | "log"
    | "method"
    | "number"
    | "request"
    | "roles"
    | "route"
    | "status"
    | "target",
    string
  >
> & {
  /** Why it was refused; absent where the answer is no problem, and in rows of versions that wrote none. */
  readonly code?: string;
};

export interface DayDigest {
  lines: string;
  /** SHA-256, base64, over the lines in order, each as canonical JSON and a newline. */
  lines_sha256: string;
  /** How many numbers up to its last line, and behind the digested day before, have none; absent: all have. */
  missing?: string;
}

const PAGE = 1_000;
const ROUND_MS = 60_000;

/** Somebody else has written the entry meanwhile. */
class Written extends Error {}
/** By the clock of entries the day is not over, as it is by the database's. */
class NotOver extends Error {}
/** A digest says so; whoever looks after the service is to hear of it too. */
class Missing extends Error {}

export function lineOf({ at, code, number, status, ...row }: StoredAccess): AccessLine {
  const texts = { at: at.toISOString(), number: String(number), status: String(status) };
  return { ...row, ...texts, ...(code !== null && { code }) };
}

/** In memory for a page at a time. @param of.coded false: as versions that knew no codes have it */
async function digestOf(
  sql: Sql,
  { log, day, coded = true }: { log: string; day: string; coded?: boolean },
): Promise<DayDigest> {
  const sha256 = createHash("sha256");
  let lines = 0;
  let after = 0n;
  for (;;) {
    const page = await readAccess(sql, log, { day, after, limit: PAGE });
    for (const row of page)
      sha256.update(`${canonical(lineOf(coded ? row : { ...row, code: null }))}\n`);
    lines += page.length;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) break;
    after = last.number;
  }
  return { lines: String(lines), lines_sha256: encodeBase64(sha256.digest()) };
}

export interface Digesting {
  /** As writer. */
  sql: Sql;
  appender: Appender;
  random: Random;
}

/**
 * Closes what has ended, and writes what is due.
 * @param failed told of each log that could not be written: its turn comes again; and of rows that are missing
 * @returns how many entries were written
 */
export async function digestDays(
  { sql, appender, random }: Digesting,
  failed: (error: unknown, log: string) => void,
): Promise<number> {
  await closeDays(sql);
  const left = new Set<string>();
  let written = 0;
  for (;;) {
    const due = (await daysToDigest(sql)).filter(({ log }) => !left.has(log));
    if (due.length === 0) return written;
    for (const { log, day } of due) {
      try {
        const { until } = await missingAccess(sql, log, day);
        const missing = until > 0n && { missing: String(until) };
        const digest = { ...(await digestOf(sql, { log, day })), ...missing };
        await appender.control(log, "access_digest", async (_, at, tx) => {
          if (day >= at.slice(0, "YYYY-MM-DD".length)) throw new NotOver();
          const newest = await readNewest(tx, log, "access_digest");
          const last = newest && decodedAs("access_digest", newest.bytes).body.day;
          if (last !== undefined && last >= day) throw new Written();
          return { day, ...digest, salt: salt(random) };
        });
        written += 1;
        if (missing) failed(new Missing(`${until} rows of ${day} or before are missing`), log);
      } catch (error) {
        if (error instanceof Written) continue;
        left.add(log);
        if (!(error instanceof NotOver)) failed(error, log);
      }
    }
  }
}

export interface DayCheck {
  log: string;
  day: string;
  closed: boolean;
  /** As the rows are now. */
  found: DayDigest;
  /** As the entry says, and which one it is. */
  stated?: (DayDigest & { index: string }) | undefined;
  /** How many numbers from the day before to the day after, or to the mark, have no row: of the day or next to it. */
  missing: string;
  /** False where an entry contradicts the rows, where there should be one, and where rows are missing. */
  agrees: boolean;
  /** False: the entry agrees with all of the rows but their codes, of which it says nothing. */
  coded: boolean;
}

/** What the log says of a day, and in which entry. */
export async function statedDigest(
  sql: Sql,
  log: string,
  day: string,
): Promise<DayCheck["stated"]> {
  const entry = await findDigest(sql, log, day);
  if (entry === undefined) return undefined;
  const { day: _, salt: __, ...digest } = decodedAs("access_digest", entry.bytes).body;
  return { index: String(entry.index), ...digest };
}

/** Works a day's digest out again. @param sql as reader or auditor */
export async function checkDay(sql: Sql, log: string, day: string): Promise<DayCheck> {
  const closed = await isDayClosed(sql, log, day);
  const found = await digestOf(sql, { log, day });
  const stated = await statedDigest(sql, log, day);
  const { behind, until } = await missingAccess(sql, log, day);
  const whole = behind + until === 0n;
  const known = { log, day, closed, missing: String(behind + until) };
  if (stated === undefined) {
    const agrees = whole && (found.lines === "0" || !closed);
    return { ...known, found, agrees, coded: true };
  }
  const said = { ...known, stated };
  if (isSame(stated, found)) return { ...said, found, agrees: whole, coded: true };
  // While a version is rolled out, one that knows no codes may be who writes the entry of rows that have some.
  const uncoded = await digestOf(sql, { log, day, coded: false });
  if (isSame(stated, uncoded)) return { ...said, found: uncoded, agrees: whole, coded: false };
  return { ...said, found, agrees: false, coded: true };
}

/** Of the lines alone. */
export function isSame(one: DayDigest, other: DayDigest): boolean {
  return one.lines === other.lines && one.lines_sha256 === other.lines_sha256;
}

/** Runs until aborted. */
export async function digestLoop(
  options: Digesting & {
    signal: AbortSignal;
    onFailure: (error: unknown, log?: string) => void;
    onRound: () => void | Promise<void>;
  },
): Promise<void> {
  const { signal, onFailure, onRound } = options;
  while (!signal.aborted) {
    const rest = delay(ROUND_MS, undefined, { signal }).catch(() => undefined);
    await digestDays(options, onFailure).catch(onFailure);
    await onRound();
    await rest;
  }
}

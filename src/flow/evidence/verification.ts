/**
 * Each day of a log has a `verification` entry: what was verified on it, and how that went; or that nothing was,
 * because nobody could. So a day that is missing is missing, and not merely quiet.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Body } from "../../core/entry.ts";
import type { Sha256 } from "../../core/hash.ts";
import type { Sql } from "../../store/connect.ts";
import { endClaim, holdClaim } from "../../store/evidence-claims.ts";
import { newestOfLogs, readNewest, readRegister } from "../../store/registers.ts";
import type { Finding } from "../check/event.ts";
import type { Clock, Random } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import { decodedAs } from "../usage/show.ts";
import { verifyNew } from "./verify-new.ts";

export type Verification = Omit<Body<"verification">, "salt">;

const DAY_MS = 86_400_000;
const ROUND_MS = 600_000;
/** Days that nobody verified, named in one round; the others in the next ones. */
const MISSED_MAX = 31;

const TASK = "verification";
/** A process that dies is replaced after so long; a larger log is verified under a claim that is renewed. */
const CLAIM_SECONDS = 3_600;

export interface Verifying {
  /** As writer. */
  sql: Sql;
  /** What is verified is read through it. */
  reader: Sql;
  appender: Appender;
  clock: Clock;
  random: Random;
  hash: Sha256;
  version: string;
  /** Names this process among those of one database. */
  holder: string;
  /** Ends what is under way: another day, or another process, goes on. */
  signal: AbortSignal;
}

export interface Told {
  /** Of an entry that is not as it must be. */
  onFinding: (finding: Finding) => void;
  onVerified: (log: string, verification: Verification) => void;
  /** A log that could not be verified: its turn comes again, and tomorrow it is said. */
  onFailure: (error: unknown, log?: string) => void;
}

/** Somebody else has written the entry meanwhile. */
class Written extends Error {}

/** One process at a time; another one finds the day's entries written. */
export async function verifyDue(verifying: Verifying, told: Told): Promise<void> {
  const { holder, signal, sql } = verifying;
  if (!(await holdClaim(sql, TASK, holder, CLAIM_SECONDS))) return;
  const today = dayOf(verifying.clock.now());
  for (const { bytes, log, size } of await newestOfLogs(sql, "verification")) {
    const newest = bytes === null ? undefined : decodedAs("verification", bytes).body;
    if (newest !== undefined && newest.day >= today) continue;
    if (signal.aborted) break;
    if (!(await holdClaim(sql, TASK, holder, CLAIM_SECONDS))) return;
    try {
      await verifyLog(verifying, { log, newest, size, today }, told);
    } catch (error) {
      if (!(error instanceof Written || signal.aborted)) told.onFailure(error, log);
    }
  }
  await endClaim(sql, TASK, holder);
}

interface Due {
  log: string;
  newest: Verification | undefined;
  size: bigint;
  today: string;
}

async function verifyLog(
  verifying: Verifying,
  { log, newest, size, today }: Due,
  { onFinding, onVerified }: Told,
): Promise<void> {
  const { reader, hash, signal, version } = verifying;
  const from = begin(newest);
  const say = async (said: Verification): Promise<void> => {
    await write(verifying, log, said);
    onVerified(log, said);
  };
  const missed = newest === undefined ? [] : daysBetween(newest.day, today);
  const nothing = { findings: "0", from: String(from), to: String(from), version } as const;
  for (const day of missed.slice(0, MISSED_MAX)) {
    await say({ ...nothing, day, outcome: "nothing" });
  }
  // Without an entry there is nothing to verify yet: tomorrow it is said that there was not.
  if (missed.length > MISSED_MAX || from >= size) return;
  const { findings, to } = await verifyNew({ sql: reader, hash, signal }, log, from, onFinding);
  const outcome = findings === 0n ? "passed" : "failed";
  const counts = { findings: String(findings), from: String(from), to: String(to) };
  await say({ ...counts, day: today, outcome, version });
}

/** What failed is verified again until it passes: nobody forgets it. */
function begin(newest: Verification | undefined): bigint {
  if (newest === undefined) return 0n;
  return BigInt(newest.outcome === "failed" ? newest.from : newest.to);
}

async function write(
  { appender, random }: Verifying,
  log: string,
  said: Verification,
): Promise<void> {
  await appender.control(log, "verification", async (_, __, tx) => {
    const newest = await readNewest(tx, log, "verification");
    const last = newest && decodedAs("verification", newest.bytes).body.day;
    if (last !== undefined && last >= said.day) throw new Written();
    return { ...said, salt: salt(random) };
  });
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, "YYYY-MM-DD".length);
}

/** Days after one and before another. */
function daysBetween(after: string, before: string): string[] {
  const days: string[] = [];
  for (let ms = Date.parse(after) + DAY_MS; ms < Date.parse(before); ms += DAY_MS) {
    days.push(dayOf(ms));
  }
  return days;
}

const PAGE = 1_000;

/** What was verified of a log from … to, both of them days, in order. */
export async function* listVerifications(
  sql: Sql,
  log: string,
  { from, to }: { from: string; to: string },
): AsyncGenerator<Verification & { index: string }> {
  let after = -1n;
  for (;;) {
    const page = await readRegister(sql, log, "verification", { after, limit: PAGE });
    for (const { bytes, index } of page) {
      const { salt: _, ...body } = decodedAs("verification", bytes).body;
      if (body.day >= from && body.day <= to) yield { ...body, index: String(index) };
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = last.index;
  }
}

/** Runs until aborted. */
export async function verifyLoop(
  options: Verifying & Told & { onRound: () => void },
): Promise<void> {
  const { signal, onFailure, onRound } = options;
  while (!signal.aborted) {
    const rest = delay(ROUND_MS, undefined, { signal }).catch(() => undefined);
    await verifyDue(options, options).catch(onFailure);
    onRound();
    await rest;
  }
}

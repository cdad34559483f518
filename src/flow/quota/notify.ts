/**
 * Tells when a namespace's level changes. Entries that nobody has looked at say which namespaces to look
 * at; level, notification and the mark up to which was looked are one transaction under the log's mark, so
 * that a process may die anywhere and each change is in the outbox once (decision 0023).
 */
import { setTimeout as delay } from "node:timers/promises";
import {
  eventOf,
  type QuotaEvent,
  type QuotaEventType,
  type Seen,
} from "../../core/quota/event.ts";
import { type Level, levelOf } from "../../core/quota/level.ts";
import { type Quota, type QuotaFacts, quotaAt } from "../../core/quota/quota.ts";
import { encodeHex } from "../../core/text.ts";
import { epochMs, instantText, monthOf, nextMonth } from "../../core/unit.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readHead } from "../../store/heads.ts";
import {
  expireNotifications,
  insertNotifications,
  type NewNotification,
} from "../../store/notifications.ts";
import {
  namespacesDue,
  readLevels,
  recallLevels,
  type StandingLevel,
  writeLevels,
} from "../../store/quota-levels.ts";
import {
  lockMark,
  logsToLookAt,
  moveMark,
  readTouched,
  type Touched,
} from "../../store/quota-marks.ts";
import { transact } from "../../store/transact.ts";
import { limitTransaction } from "../../store/transaction.ts";
import type { Clock, Random } from "../clock.ts";
import { readFacts } from "./facts.ts";
import { soundClock } from "./sound-clock.ts";

/**
 * Of one transaction. Each page sums up all that is not folded yet: at 500 namespaces a page, builds that took turns
 * among 1,000 were looked at 500 by 500, and that cost PostgreSQL more than to append them.
 */
const ENTRIES_MAX = 10_000n;
const NAMESPACES_MAX = 2_000;
/** Of one log before the next has its turn. */
const PAGES_MAX = 8;
const INTERVAL_MS = 1_000;
const EXPIRE_MS = 60_000;
const ID_BYTES = 16;

const DAY_MS = 86_400_000;
/** What nobody took for so long is no news any more; every retry ends before. */
export const GIVEN_UP_MS = 7 * DAY_MS;
/** For so long the owner is shown it. */
export const KEPT_MS = 35 * DAY_MS;

export interface Notifying {
  /** As writer. */
  sql: Sql;
  clock: Clock;
  random: Random;
}

/** What one look came to; `more` is left to look at. */
export interface Look {
  told: QuotaEventType[];
  more: boolean;
}

const NOTHING: Look = { told: [], more: false };

/** A page of what is new on a log; nothing where another process is looking at it. */
export async function notify(notifying: Notifying, log: string): Promise<Look> {
  try {
    const mode = "isolation level repeatable read";
    return await transact(notifying.sql, (tx) => look(tx, notifying, log), mode);
  } catch (error) {
    // Between this snapshot and its lock another process has looked.
    if (error instanceof Error && "code" in error && error.code === "40001") return NOTHING;
    throw error;
  }
}

async function look(tx: Transaction, { clock, random }: Notifying, log: string): Promise<Look> {
  await limitTransaction(tx);
  const mark = await lockMark(tx, log, clock.now());
  const head = await readHead(tx, log);
  if (mark === undefined || head === undefined) return NOTHING;
  const { at } = mark;
  const month = monthOf(instantText(at));
  if (mark.wasAhead) await recallLevels(tx, log, { at, month });
  const { touched, to } = await nextPage(tx, log, mark.index, head.size);
  const due = await namespacesDue(tx, log, { at, limit: NAMESPACES_MAX });
  const causes = new Map(touched.map((each) => [each.namespace, causeOf(each, month)]));
  for (const namespace of due) causes.set(namespace, { mayBeLate: true, isNews: true });
  const changes = await changesOf(tx, { log, asOf: head.size, at: instantText(at) }, causes);
  const told = changes.flatMap((change) => change.told);
  const outbox = told.map(({ namespace, number, event }): NewNotification => {
    const id = `evt_${encodeHex(random(ID_BYTES))}`;
    return { namespace, number, id, body: JSON.stringify(event) };
  });
  await insertNotifications(tx, log, at, outbox);
  await writeLevels(
    tx,
    log,
    changes.map(({ level }) => level),
  );
  await moveMark(tx, log, { index: to, at });
  const more = to < head.size || due.length === NAMESPACES_MAX;
  return { told: told.map(({ event }) => event.type), more };
}

/** As many entries as a transaction takes, or those before the first of a namespace too many. */
async function nextPage(
  tx: Transaction,
  log: string,
  from: bigint,
  size: bigint,
): Promise<{ touched: Touched[]; to: bigint }> {
  const to = size - from > ENTRIES_MAX ? from + ENTRIES_MAX : size;
  const found = await readTouched(tx, log, { from, to, limit: NAMESPACES_MAX + 1 });
  return { touched: found.slice(0, NAMESPACES_MAX), to: found[NAMESPACES_MAX]?.first ?? to };
}

/** Why a namespace is looked at. */
interface Cause {
  /** By what came before this month began, and nobody has looked at since. */
  mayBeLate: boolean;
  /** Whether somebody is told. */
  isNews: boolean;
}

function causeOf({ firstAt, news }: Touched, month: string): Cause {
  return { mayBeLate: firstAt.getTime() < startOf(month), isNews: news };
}

interface Told {
  namespace: string;
  number: bigint;
  event: QuotaEvent;
}

interface Change {
  level: StandingLevel;
  told: Told[];
}

/** @param causes by namespace */
async function changesOf(
  tx: Transaction,
  seen: Omit<Seen, "namespace">,
  causes: ReadonlyMap<string, Cause>,
): Promise<Change[]> {
  if (causes.size === 0) return [];
  const namespaces = [...causes.keys()];
  const { facts } = await readFacts(tx, seen.log, namespaces);
  const levels = await readLevels(tx, seen.log, namespaces);
  const standing = new Map(levels.map((level) => [level.namespace, level]));
  return Array.from(causes).flatMap(([namespace, cause]) => {
    const known = facts.get(namespace);
    if (known === undefined) throw new Error("notify: a namespace without facts");
    return changeOf({ ...seen, namespace }, known, cause, standing.get(namespace)) ?? [];
  });
}

/**
 * Undefined where what is written stays as it is. What came in the last moments of a month is looked at as of
 * its end first: who looks a moment before midnight and who looks after it tell the same.
 */
function changeOf(
  seen: Seen,
  facts: QuotaFacts,
  { mayBeLate, isNews }: Cause,
  before: StandingLevel | undefined,
): Change | undefined {
  const { namespace } = seen;
  const month = monthOf(seen.at);
  const isLate = mayBeLate && (before === undefined || before.month < month);
  const instants = isLate ? [instantText(startOf(month) - 1), seen.at] : [seen.at];
  const told: Told[] = [];
  let level = before;
  for (const instant of instants) {
    const quota = quotaAt(facts, instant);
    const [from, next] = [standingIn(quota.month, level), levelIn(namespace, quota, level)];
    const event = isNews ? eventOf(seen, quota, { from, to: next.level }) : undefined;
    if (event !== undefined) {
      next.notified += 1n;
      told.push({ namespace, number: next.notified, event });
    }
    if (from !== next.level || next.lookAt !== level?.lookAt) level = next;
  }
  return level === undefined || level === before ? undefined : { level, told };
}

/** A month begins at `none`, and nobody is told. */
function standingIn(month: string, level: StandingLevel | undefined): Level {
  return level?.month === month ? level.level : "none";
}

function levelIn(
  namespace: string,
  quota: Quota,
  before: StandingLevel | undefined,
): StandingLevel {
  const { month, until } = quota;
  const lookAt = until < startOf(nextMonth(month)) ? until : undefined;
  return { namespace, month, level: levelOf(quota), notified: before?.notified ?? 0n, lookAt };
}

function startOf(month: string): number {
  return epochMs(`${month}T00:00:00.000Z`);
}

export interface NotifyLoop extends Notifying {
  signal: AbortSignal;
  onTold(type: QuotaEventType): void;
  /** Of one log; without one, of the list of logs or of what is old. */
  onFailure(error: unknown, log?: string): void;
  onRound(): void;
  intervalMs?: number;
}

/** Runs until aborted. What fails is reported and tried again in the next round. */
export async function notifyLoop(loop: NotifyLoop): Promise<void> {
  const { signal, sql, intervalMs = INTERVAL_MS } = loop;
  let expireAt = 0;
  while (!signal.aborted) {
    let more = false;
    try {
      const clock = await soundClock(sql, loop.clock);
      for (const log of await logsToLookAt(sql, clock.now())) {
        if (signal.aborted) break;
        more = (await attend({ ...loop, clock }, log)) || more;
      }
      if (clock.now() >= expireAt) {
        expireAt = clock.now() + EXPIRE_MS;
        const now = clock.now();
        await expireNotifications(sql, { now, givenUpMs: GIVEN_UP_MS, keptMs: KEPT_MS });
      }
    } catch (error) {
      loop.onFailure(error);
    }
    loop.onRound();
    await delay(more ? 0 : intervalMs, undefined, { signal }).catch(() => undefined);
  }
}

/** Some pages of one log. @returns whether there is more */
async function attend(loop: NotifyLoop, log: string): Promise<boolean> {
  try {
    for (let page = 0; page < PAGES_MAX && !loop.signal.aborted; page += 1) {
      const { told, more } = await notify(loop, log);
      for (const type of told) loop.onTold(type);
      if (!more) return false;
    }
    return true;
  } catch (error) {
    loop.onFailure(error, log);
    return false;
  }
}

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
import { levelOf } from "../../core/quota/level.ts";
import { type Quota, quotaAt } from "../../core/quota/quota.ts";
import { encodeHex } from "../../core/text.ts";
import { epochMs, instantText, nextMonth } from "../../core/unit.ts";
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

/** Of one transaction. */
const ENTRIES_MAX = 10_000n;
const NAMESPACES_MAX = 500;
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
  const { touched, to } = await nextPage(tx, log, mark.index, head.size);
  const due = await namespacesDue(tx, log, { at, limit: NAMESPACES_MAX });
  const isNews = new Map(touched.map(({ namespace, news }) => [namespace, news]));
  for (const namespace of due) isNews.set(namespace, true);
  const changes = await changesOf(tx, { log, asOf: head.size, at: instantText(at) }, isNews);
  const told = changes.flatMap(({ level, event }) => (event ? [{ level, event }] : []));
  const outbox = told.map(({ level: { namespace, notified }, event }): NewNotification => {
    const id = `evt_${encodeHex(random(ID_BYTES))}`;
    return { namespace, number: notified, id, body: JSON.stringify(event) };
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

interface Change {
  level: StandingLevel;
  /** Of a change that is told. */
  event: QuotaEvent | undefined;
}

/** @param isNews by namespace: whether somebody is told */
async function changesOf(
  tx: Transaction,
  seen: Omit<Seen, "namespace">,
  isNews: ReadonlyMap<string, boolean>,
): Promise<Change[]> {
  if (isNews.size === 0) return [];
  const namespaces = [...isNews.keys()];
  const { facts } = await readFacts(tx, seen.log, namespaces);
  const levels = await readLevels(tx, seen.log, namespaces);
  const standing = new Map(levels.map((level) => [level.namespace, level]));
  return namespaces.flatMap((namespace): Change[] => {
    const known = facts.get(namespace);
    if (known === undefined) throw new Error("notify: a namespace without facts");
    const quota = quotaAt(known, seen.at);
    const change = changeOf({ ...seen, namespace }, quota, standing.get(namespace));
    if (change === undefined) return [];
    const { level, event } = change;
    if (event === undefined || isNews.get(namespace) !== true) return [{ level, event: undefined }];
    return [{ level: { ...level, notified: level.notified + 1n }, event }];
  });
}

/** Undefined where what is written stays as it is. A new month begins at `none`, and nobody is told. */
function changeOf(seen: Seen, quota: Quota, before: StandingLevel | undefined): Change | undefined {
  const { month, until } = quota;
  const from = before?.month === month ? before.level : "none";
  const to = levelOf(quota);
  const lookAt = until < startOf(nextMonth(month)) ? until : undefined;
  if (to === from && lookAt === before?.lookAt) return undefined;
  const { namespace } = seen;
  const level = { namespace, month, level: to, notified: before?.notified ?? 0n, lookAt };
  return { level, event: eventOf(seen, quota, { from, to }) };
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
  const { clock, signal, sql, intervalMs = INTERVAL_MS } = loop;
  let expireAt = 0;
  while (!signal.aborted) {
    let more = false;
    try {
      for (const log of await logsToLookAt(sql, clock.now())) {
        if (signal.aborted) break;
        more = (await attend(loop, log)) || more;
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

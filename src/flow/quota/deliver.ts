/**
 * Sends what is in the outbox: at least once, in order for each namespace. Of several processes whoever
 * claims a notification sends it, and one that dies between sending and saying so leaves a claim that runs
 * out: the receiver is sent the same id again, by which it knows (decision 0023).
 */
import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Sql } from "../../store/connect.ts";
import {
  type ClaimedNotification,
  claimNotifications,
  postponeNotification,
  readBacklog,
  settleNotification,
} from "../../store/notifications.ts";
import { dismissReceiver, isDismissed, restReceiver } from "../../store/webhook-receivers.ts";
import type { Clock, Random } from "../clock.ts";
import { soundClock } from "./sound-clock.ts";
import { post, TIMEOUT_MS, type Webhook, WebhookError } from "./webhook.ts";

/** What waits to be sent. */
export interface Backlog {
  notifications: number;
  /** Age of the oldest; 0 when there is none. */
  ms: number;
}

export interface DeliveryObserver {
  /** `failed` is tried again, `given_up` is not. */
  attempted(outcome: "delivered" | "failed" | "given_up"): void;
  failed(error: unknown): void;
  /** The backlog where there was a look at it. */
  roundEnded(backlog: Backlog | undefined): void;
}

export interface Delivering {
  /** As writer. */
  sql: Sql;
  clock: Clock;
  random: Random;
  webhook: Webhook;
  signal: AbortSignal;
  observer: DeliveryObserver;
  /** Of one request. */
  timeoutMs?: number;
  intervalMs?: number;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** After each failed attempt, as the standard has them: nine more over three days, and then no more. */
export const RETRY_MS = [
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
] as const;
/** So much longer at most, or else all that failed together comes back together. */
const JITTER = 0.25;
/** How long a receiver that is away is left alone: doubled with each time. */
const AWAY_MS = 5 * SECOND;
const AWAY_MS_MAX = 5 * MINUTE;
/** Requests at once; none holds a database connection while the receiver thinks. */
const LANES = 8;
/** Beyond the request itself, until a claim runs out. */
const CLAIM_SLACK_MS = 40 * SECOND;
const INTERVAL_MS = SECOND;
const LOOK_MS = 10 * SECOND;

/** Runs until aborted; what is under way then is sent again by whoever comes next. */
export async function deliverLoop(delivering: Delivering): Promise<void> {
  const { observer, signal, sql, intervalMs = INTERVAL_MS } = delivering;
  const receiver = receiverOf(delivering.webhook);
  let awayMs = AWAY_MS;
  let lookAt = 0;
  let standing: unknown;
  while (!signal.aborted) {
    let claimed = 0;
    let backlog: Backlog | undefined;
    try {
      const clock = await soundClock(sql, delivering.clock);
      const round = await deliverDue({ ...delivering, clock }, receiver);
      claimed = round.claimed;
      if (claimed > 0) standing = round.failure;
      if (round.failure?.away) {
        const restMs = Math.max(awayMs, round.failure.retryAfterMs);
        await restReceiver(sql, receiver, clock.now() + jittered(delivering, restMs));
        awayMs = Math.min(2 * awayMs, AWAY_MS_MAX);
      } else if (claimed > 0) {
        awayMs = AWAY_MS;
      }
      if (clock.now() >= lookAt) {
        lookAt = clock.now() + LOOK_MS;
        backlog = await lookAtBacklog({ ...delivering, clock });
        if (await isDismissed(sql, receiver)) standing = new WebhookError("410");
      }
      if (standing !== undefined) observer.failed(standing);
    } catch (error) {
      if (!signal.aborted) observer.failed(error);
    }
    observer.roundEnded(backlog);
    await delay(claimed > 0 ? 0 : intervalMs, undefined, { signal }).catch(() => undefined);
  }
}

function receiverOf({ url }: Webhook): Uint8Array {
  return new Uint8Array(createHash("sha256").update(url).digest());
}

/** One claim, and all that is in it. `failure`: one of those that there were, rather one of the receiver itself. */
async function deliverDue(
  delivering: Delivering,
  receiver: Uint8Array,
): Promise<{ claimed: number; failure: WebhookError | undefined }> {
  const { clock, sql, timeoutMs = TIMEOUT_MS } = delivering;
  const now = clock.now();
  const until = now + timeoutMs + CLAIM_SLACK_MS;
  const claimed = await claimNotifications(sql, { receiver, now, until, limit: LANES });
  // To the end of each, also where one rejects: nothing is under way when this is over.
  const sent = await Promise.allSettled(claimed.map((each) => deliver(delivering, receiver, each)));
  const broken = sent.find(({ status }) => status === "rejected");
  if (broken?.status === "rejected") throw broken.reason;
  const failures = sent.flatMap((each) =>
    each.status === "fulfilled" && each.value !== undefined ? [each.value] : [],
  );
  const failure = failures.find(({ away }) => away) ?? failures[0];
  return { claimed: claimed.length, failure };
}

async function deliver(
  delivering: Delivering,
  receiver: Uint8Array,
  claimed: ClaimedNotification,
): Promise<WebhookError | undefined> {
  const { clock, observer, signal, sql, timeoutMs, webhook } = delivering;
  const { attempts, body, id } = claimed;
  try {
    await post({ webhook, id, body, now: clock.now(), signal, timeoutMs });
  } catch (error) {
    if (!(error instanceof WebhookError)) {
      // Ended with this process, and nobody knows whether it was taken: the next one sends it at once.
      await postponeNotification(sql, claimed, clock.now());
      throw error;
    }
    if (error.gone) await dismissReceiver(sql, receiver);
    const retryMs = RETRY_MS[attempts - 1];
    if (retryMs === undefined) {
      await settleNotification(sql, claimed, { state: "given_up", now: clock.now() });
    } else {
      const restMs = Math.max(jittered(delivering, retryMs), error.retryAfterMs);
      await postponeNotification(sql, claimed, clock.now() + restMs);
    }
    observer.attempted(retryMs === undefined ? "given_up" : "failed");
    return error;
  }
  // Not before the receiver has it: what is lost in between is sent twice, and never not at all.
  await settleNotification(sql, claimed, { state: "delivered", now: clock.now() });
  observer.attempted("delivered");
  return undefined;
}

async function lookAtBacklog({ clock, sql }: Delivering): Promise<Backlog> {
  const { waiting, since } = await readBacklog(sql);
  const ms = since === null ? 0 : Math.max(0, clock.now() - since.getTime());
  return { notifications: Number(waiting), ms };
}

function jittered({ random }: Delivering, ms: number): number {
  const [byte = 0] = random(1);
  return Math.round(ms * (1 + (JITTER * byte) / 256));
}

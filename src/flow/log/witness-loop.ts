/**
 * Keeps every witness up to date with every log, each witness at its own pace: one that is slow or away
 * delays neither the others nor the seals. Of several processes, whoever claims a log submits it.
 */
import { setTimeout as delay } from "node:timers/promises";
import { ArchiveError } from "../../store/archive.ts";
import { claimSubmissions, moveSubmissions, readWitnessLag } from "../../store/submissions.ts";
import { asksForQuorum } from "./cosigned.ts";
import { type Submitting, submit, type Witness } from "./submit.ts";
import { WitnessError } from "./witness.ts";

export interface WitnessObserver {
  cosigned(witness: string): void;
  /** A submission that ended without a cosignature, and why: what WitnessError says, or else a code. */
  refused(witness: string, reason: string): void;
  /** Of one submission; without a log, of all that has to do with the witness. */
  failed(witness: string, error: unknown, log?: string): void;
  /** Failures of logs that were not tried again in this round are those of the round before. */
  roundEnded(witness: string, lag: SubmissionLag | undefined): void;
}

/** Of the logs whose newest checkpoint the witness has not cosigned; undefined where nobody could say. */
export interface SubmissionLag {
  logs: number;
  /** Age of the oldest checkpoint beyond the last cosigned one; 0 when there is none. */
  ms: number;
}

export interface WitnessLoopOptions extends Submitting {
  witnesses: readonly Witness[];
  /** From one submission of a log to a witness to the next, at least. */
  intervalMs?: number;
  observer: WitnessObserver;
}

export const SUBMIT_INTERVAL_MS = 30_000;
/** Requests at once to one witness; none holds a database connection while it waits. */
const LANES = 4;
const CLAIMED_MAX = 64;
const LOOK_MS_MAX = 3_000;
/** What a witness refuses is tried again after so many intervals: somebody has to look into it. */
const REFUSED_INTERVALS = 20;
/** Every witness that answers is asked in each; a quorum that lacks one that does not waits no longer. */
const ROUND_INTERVALS = 10;
const AWAY_MS_MAX = 600_000;

/** Resolves after the abort, when nothing is being submitted any more. */
export async function witnessLoop(options: WitnessLoopOptions): Promise<void> {
  await Promise.all(options.witnesses.map((witness) => attend(options, witness)));
}

async function attend(options: WitnessLoopOptions, witness: Witness): Promise<void> {
  const { clock, intervalMs = SUBMIT_INTERVAL_MS, observer, signal, sql } = options;
  const lookMs = Math.min(LOOK_MS_MAX, Math.ceil(intervalMs / 10));
  const standing = new Map<string, { error: unknown; at: number }>();
  let awayMs = lookMs;
  while (!signal.aborted) {
    let restMs = lookMs;
    let lag: SubmissionLag | undefined;
    try {
      const round = await submitDue(options, witness);
      for (const log of round.tried) standing.delete(log);
      for (const [log, error] of round.failures) standing.set(log, { error, at: clock.now() });
      awayMs = round.away === undefined ? lookMs : Math.min(2 * awayMs, AWAY_MS_MAX);
      if (round.away !== undefined) {
        observer.failed(witness.name, round.away);
        restMs = Math.max(awayMs, round.away.retryAfterMs);
      } else if (round.tried.length === CLAIMED_MAX) {
        restMs = 0;
      }
      const { behind, since } = await readWitnessLag(sql, [witness.vkey.id]);
      lag = { logs: Number(behind), ms: since === null ? 0 : Math.max(0, clock.now() - +since) };
    } catch (error) {
      observer.failed(witness.name, error);
    }
    // What was not tried for so long, another process has taken over.
    const expired = clock.now() - 2 * REFUSED_INTERVALS * intervalMs;
    for (const [log, { error, at }] of standing) {
      if (at < expired) standing.delete(log);
      else observer.failed(witness.name, error, log);
    }
    observer.roundEnded(witness.name, lag);
    await delay(restMs, undefined, { signal }).catch(() => undefined);
  }
}

interface Round {
  tried: readonly string[];
  /** By log. */
  failures: Map<string, unknown>;
  /** What the rest of the round was left out for. */
  away: WitnessError | undefined;
}

/** One claim, and all that is in it. */
async function submitDue(options: WitnessLoopOptions, witness: Witness): Promise<Round> {
  const { clock, intervalMs = SUBMIT_INTERVAL_MS, observer, signal, sql } = options;
  const keyId = witness.vkey.id;
  const now = clock.now();
  const byRounds = asksForQuorum(options.policy);
  const claim = { keyId, now, until: now + intervalMs, limit: CLAIMED_MAX, byRounds };
  const submitting = { ...options, roundMs: ROUND_INTERVALS * intervalMs };
  const claimed = await claimSubmissions(sql, claim);
  const failures = new Map<string, unknown>();
  const refused: string[] = [];
  const tried: string[] = [];
  let away: WitnessError | undefined;
  const waiting = claimed.values();
  const lane = async (): Promise<void> => {
    // Asked before the next one is taken: what is left over goes back.
    while (away === undefined && !signal.aborted) {
      const { value: log, done } = waiting.next();
      if (done === true) return;
      tried.push(log);
      try {
        if ((await submit(submitting, witness, log)) === "cosigned")
          observer.cosigned(witness.name);
      } catch (error) {
        if (signal.aborted) return;
        observer.refused(witness.name, reasonOf(error));
        if (error instanceof WitnessError && error.away) away = error;
        else failures.set(log, error);
        if (error instanceof WitnessError && !error.away) refused.push(log);
      }
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  await moveSubmissions(sql, refused, keyId, now + REFUSED_INTERVALS * intervalMs);
  // Before what was tried: a log that a witness stumbles over never keeps the others waiting.
  await moveSubmissions(sql, claimed.slice(tried.length), keyId, now);
  return { tried, failures, away };
}

function reasonOf(error: unknown): string {
  if (error instanceof WitnessError) return error.reason;
  return error instanceof ArchiveError ? error.code : "internal";
}

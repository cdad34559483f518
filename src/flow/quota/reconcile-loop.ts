/**
 * Rounds of the reconciler. All processes offer again what they heard; one of them compares, whichever moves
 * the row of the next round first (decision 0024).
 */
import { setTimeout as delay } from "node:timers/promises";
import { MINUTE } from "../../core/charge.ts";
import type { Sql } from "../../store/connect.ts";
import { claimReconciliation, endReconciliation } from "../../store/reconciliations.ts";
import type { Drift, DriftKind } from "./drift.ts";
import type { Reconciling } from "./kept.ts";
import { offerAgain } from "./offer-again.ts";
import { compareAll } from "./reconcile.ts";

/** A namespace is looked at again within 60 s (DESIGN §17): a tick, a round's interval, and the round. */
const TICK_MS = 15_000;
const ROUND_MS = 30_000;
/** After so long a round is taken for dead, and another process begins one. */
const CLAIM_MS = 45_000;
/** What one round may find, all together. */
const ALARM_ABOVE = MINUTE;

export interface Round {
  /** Undefined: another process compares. */
  namespaces: number | undefined;
  drift: ReadonlyMap<DriftKind, number>;
  /** Together off by more than may pass unseen, or by more than can be said. */
  alarming: boolean;
  elapsedMs: number;
}

export interface Rounds {
  reconciling: Reconciling;
  /** As writer. */
  sql: Sql;
  onDrift: (drift: Drift) => void;
}

/** @throws Problem `busy`, or what the database said: it is away, and the next round is as good */
export async function reconcileRound(rounds: Rounds): Promise<Round> {
  const { reconciling, sql, onDrift } = rounds;
  const { clock } = reconciling;
  const start = clock.now();
  const drift = new Map<DriftKind, number>();
  let off: bigint | undefined = 0n;
  const found = (each: Drift): void => {
    drift.set(each.kind, (drift.get(each.kind) ?? 0) + 1);
    // What a key's revocation takes out was no fault of anybody's here.
    const amount = each.kind === "revoked" ? 0n : each.amount;
    off = off === undefined || amount === undefined ? undefined : off + amount;
    onDrift(each);
  };
  await offerAgain(reconciling, found);
  const claim = await claimReconciliation(sql, CLAIM_MS);
  const namespaces = claim && (await compareAll(reconciling, found));
  if (claim !== undefined) await endReconciliation(sql, claim, CLAIM_MS - ROUND_MS);
  const alarming = off === undefined || off > ALARM_ABOVE;
  return { namespaces, drift, alarming, elapsedMs: clock.now() - start };
}

export interface ReconcileLoop extends Rounds {
  signal: AbortSignal;
  onRound: (round: Round) => void;
  onError: (error: unknown) => void;
}

/** Runs until aborted. A round that fails is reported, and its claim runs out. */
export async function reconcileLoop(loop: ReconcileLoop): Promise<void> {
  const { signal, onError, onRound } = loop;
  while (!signal.aborted) {
    const rest = delay(TICK_MS, undefined, { signal }).catch(() => undefined);
    await reconcileRound(loop).then(onRound, onError);
    await rest;
  }
}

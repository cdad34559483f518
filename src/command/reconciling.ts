/** The reconciler of live usage as it runs beside requests: what it finds is logged, counted, and told if it is much. */
import { computeMinutes } from "../core/charge.ts";
import { computeMs } from "../core/unit.ts";
import type { Drift } from "../flow/quota/drift.ts";
import type { Reconciling } from "../flow/quota/kept.ts";
import { type Round, reconcileLoop } from "../flow/quota/reconcile-loop.ts";
import type { Sql } from "../store/connect.ts";
import type { Logger, Metrics } from "../telemetry.ts";
import { openTrouble } from "./trouble.ts";

/** Lines of one round; the counts go on. */
const LINES_MAX = 20;

export function startReconciling(options: {
  quota: Reconciling;
  sql: Sql;
  log: Logger;
  metrics: Pick<Metrics, "reconciled">;
  signal: AbortSignal;
}): Promise<void> {
  const { quota: reconciling, log, metrics, signal, sql } = options;
  const trouble = openTrouble(log, "reconcile");
  let lines = 0;
  const onDrift = ({ kind, log: name, namespace, job, amount }: Drift): void => {
    lines += 1;
    if (lines > LINES_MAX) return;
    const minutes = amount === undefined ? "unbounded" : computeMinutes(computeMs(amount));
    log.warn({ kind, log: name, namespace, job, minutes }, "live usage differed, repaired");
  };
  const onRound = (round: Round): void => {
    if (round.alarming) {
      const drift = Object.fromEntries(round.drift);
      log.error(
        { drift, lines_left_out: Math.max(0, lines - LINES_MAX) },
        "live usage was far off",
      );
    }
    lines = 0;
    trouble.roundEnded();
    metrics.reconciled(round);
  };
  const onError = (error: unknown): void => {
    lines = 0;
    trouble.failed(error);
    trouble.roundEnded();
  };
  return reconcileLoop({ reconciling, sql, signal, onDrift, onRound, onError });
}

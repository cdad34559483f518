/** Reconciliation with platforms as it runs beside requests: what fails is told, and what stands open for too long. */
import type { ReconciliationConfig } from "../config-reconciliation.ts";
import { type ReconcilingPlatforms, reconciliationLoop } from "../flow/reconcile/loop.ts";
import type { Logger, Metrics } from "../telemetry.ts";
import { openTrouble } from "./trouble.ts";

type Options = Omit<ReconcilingPlatforms, "anomalies" | "bounds" | "observer" | "pulling"> & {
  reconciliation: ReconciliationConfig;
  log: Logger;
  metrics: Pick<Metrics, "breaksFound" | "pulled" | "breaksStanding">;
};

/** Resolves after the abort, when nothing is under way any more. */
export function startReconciliation(options: Options): Promise<void> {
  const { clock, log, metrics, reconciliation } = options;
  const { alarmMs, anomalies, bounds, platforms } = reconciliation;
  const matching = openTrouble(log, "reconciliation");
  const walking = openTrouble(log, "jobs of the platform");
  const gitlabs = platforms.flatMap(({ log, pull }) => (pull ? { log, ...pull } : []));
  const capacities = new Map(platforms.map(({ capacity, log }) => [log, capacity]));
  let alarmed = "";
  return reconciliationLoop({
    ...options,
    bounds,
    pulling: {
      gitlabs,
      intervalMs: reconciliation.pullIntervalMs,
      lookbackMs: reconciliation.pullLookbackMs,
      monthLookbackMs: reconciliation.pullMonthLookbackMs,
    },
    anomalies: (name) => ({ ...anomalies, capacity: capacities.get(name) ?? anomalies.capacity }),
    observer: {
      reconciled: metrics.breaksFound,
      pulled: metrics.pulled,
      failed: matching.failed,
      roundEnded: matching.roundEnded,
      pullFailed: walking.failed,
      pullRoundEnded: walking.roundEnded,
      standing: (open) => {
        const now = clock.now();
        const aged = open.map(({ code, open, since }) => {
          return { code, open: Number(open), ms: Math.max(0, now - since.getTime()) };
        });
        metrics.breaksStanding(aged);
        const late = aged.filter(({ ms }) => ms > alarmMs).map(({ code }) => code);
        // Said when a code begins to be late, and not each minute.
        if (late.length > 0 && late.join() !== alarmed) {
          log.error({ codes: late, days: alarmMs / 86_400_000 }, "breaks stand open for too long");
        }
        alarmed = late.join();
      },
    },
  });
}

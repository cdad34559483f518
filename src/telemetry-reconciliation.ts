/** Figures of reconciliation, over all logs: labels are few, and anybody's metrics may be read. */
import { Counter, Gauge, type Registry } from "prom-client";

export interface ReconciliationMetrics {
  breaksFound(found: { opened: number; healed: number }): void;
  /** A step of a walk over a runner's jobs. */
  pulled(outcome: "page" | "failed"): void;
  /** What stands open now, by code; `ms` is the age of the oldest. */
  breaksStanding(open: Iterable<{ code: string; open: number; ms: number }>): void;
  /** Holds and conflicts that stand open now; `ms` is the age of the oldest. */
  unresolved(open: Iterable<{ kind: string; open: number; ms: number }>): void;
}

export function reconciliationMetrics(register: Registry): ReconciliationMetrics {
  const registers = [register];
  const breaks = new Counter({
    name: "minutebook_breaks_total",
    help: "Breaks that this process opened, and that healed",
    labelNames: ["event"],
    registers,
  });
  const pulls = new Counter({
    name: "minutebook_platform_pulls_total",
    help: "Steps of walks over runners' jobs at the platform, by outcome",
    labelNames: ["outcome"],
    registers,
  });
  const standing = new Gauge({
    name: "minutebook_breaks_open",
    help: "Breaks that stand open, of all logs, by code",
    labelNames: ["code"],
    registers,
  });
  const oldest = new Gauge({
    name: "minutebook_breaks_oldest_seconds",
    help: "Age of the oldest break that stands open, by code",
    labelNames: ["code"],
    registers,
  });
  const unresolved = new Gauge({
    name: "minutebook_unresolved",
    help: "Holds and conflicts that stand open, of all logs, by kind",
    labelNames: ["kind"],
    registers,
  });
  const waiting = new Gauge({
    name: "minutebook_unresolved_oldest_seconds",
    help: "Age of the oldest hold or conflict that stands open, by kind",
    labelNames: ["kind"],
    registers,
  });
  return {
    breaksFound: ({ healed, opened }) => {
      breaks.inc({ event: "opened" }, opened);
      breaks.inc({ event: "healed" }, healed);
    },
    pulled: (outcome) => pulls.inc({ outcome }),
    unresolved: (all) => {
      unresolved.reset();
      waiting.reset();
      for (const { kind, ms, open } of all) {
        unresolved.set({ kind }, open);
        waiting.set({ kind }, ms / 1_000);
      }
    },
    breaksStanding: (all) => {
      standing.reset();
      oldest.reset();
      for (const { code, ms, open } of all) {
        standing.set({ code }, open);
        oldest.set({ code }, ms / 1_000);
      }
    },
  };
}

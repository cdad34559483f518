/** Figures of reconciliation, over all logs: labels are few, and anybody's metrics may be read. */
import { Counter, Gauge, type Registry } from "prom-client";

export interface ReconciliationMetrics {
  breaksFound(found: { opened: number; healed: number }): void;
  /** A step of a walk over a runner's jobs. */
  pulled(outcome: "page" | "failed"): void;
  /** What stands open now, by code; `ms` is the age of the oldest. */
  breaksStanding(open: Iterable<{ code: string; open: number; ms: number }>): void;
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
  return {
    breaksFound: ({ healed, opened }) => {
      breaks.inc({ event: "opened" }, opened);
      breaks.inc({ event: "healed" }, healed);
    },
    pulled: (outcome) => pulls.inc({ outcome }),
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

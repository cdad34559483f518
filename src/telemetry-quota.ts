/** Figures of live quota. Of a namespace or a job nothing is said: labels are few, and anybody's metrics may be read. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { Redis } from "./flow/ready.ts";

export interface QuotaMetrics {
  /** One request's decisions: on what was asked, what was answered and where live usage was read. */
  decided(decisions: Iterable<Decided>, elapsedMs: number): void;
  /** A round of the reconciler. */
  reconciled(round: Reconciled): void;
  /** Notifications that were written for their receiver, by event. */
  notified(event: string): void;
  /** A try to deliver one, by how it ended. */
  delivered(outcome: string): void;
  /** What waits to be delivered, and for how long the longest of it. */
  undelivered(backlog: { notifications: number; ms: number }): void;
}

interface Decided {
  ask: "start" | "go_on" | "run";
  allowed: boolean;
  /** Undefined: nothing live had to be asked. */
  source?: "redis" | "process" | undefined;
}

export interface Reconciled {
  /** Undefined: another process compared them; this one offered again what it had heard. */
  namespaces: number | undefined;
  elapsedMs: number;
  /** What was found to differ, and repaired, by kind. */
  drift: Iterable<readonly [kind: string, count: number]>;
  /** More than may pass unseen. */
  alarming: boolean;
}

/** What gauges are read from. */
export interface QuotaSources {
  redis: () => Redis;
  ledger: () => { namespaces: number; logs: number };
  stopsDropped: () => number;
}

const STATES: readonly Redis[] = ["up", "away", "none"];

/** Down to what a single EVALSHA takes. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const ROUND_SECONDS = [0.1, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120];

export function quotaMetrics(register: Registry, sources: QuotaSources): QuotaMetrics {
  const registers = [register];
  watchQuota(registers, sources);
  const decisions = new Counter({
    name: "minutebook_quota_decisions_total",
    help: "Decisions by what was asked, what was answered, and where live usage was read",
    labelNames: ["ask", "answer", "source"],
    registers,
  });
  const seconds = new Histogram({
    name: "minutebook_quota_decision_seconds",
    help: "Time of all decisions of one request",
    buckets: SECONDS,
    registers,
  });
  const notifications = new Counter({
    name: "minutebook_quota_notifications_total",
    help: "Notifications written by this process, by event",
    labelNames: ["event"],
    registers,
  });
  const deliveries = new Counter({
    name: "minutebook_webhook_deliveries_total",
    help: "Tries to deliver a notification, by how they ended",
    labelNames: ["outcome"],
    registers,
  });
  return {
    decided: (all, elapsedMs) => {
      const counts = new Map<string, { labels: Record<string, string>; count: number }>();
      for (const { allowed, ask, source = "none" } of all) {
        const answer = allowed ? "allowed" : "refused";
        const key = `${ask} ${answer} ${source}`;
        const known = counts.get(key);
        if (known === undefined) counts.set(key, { labels: { ask, answer, source }, count: 1 });
        else known.count += 1;
      }
      for (const { labels, count } of counts.values()) decisions.inc(labels, count);
      seconds.observe(elapsedMs / 1_000);
    },
    notified: (event) => notifications.inc({ event }),
    delivered: (outcome) => deliveries.inc({ outcome }),
    undelivered: backlogMetrics(registers),
    reconciled: reconcilerMetrics(registers),
  };
}

function backlogMetrics(registers: Registry[]): QuotaMetrics["undelivered"] {
  const waiting = new Gauge({
    name: "minutebook_webhook_backlog",
    help: "Notifications that wait to be delivered, of all processes",
    registers,
  });
  const seconds = new Gauge({
    name: "minutebook_webhook_backlog_seconds",
    help: "Age of the oldest of them",
    registers,
  });
  return ({ ms, notifications }) => {
    waiting.set(notifications);
    seconds.set(ms / 1_000);
  };
}

function reconcilerMetrics(registers: Registry[]): QuotaMetrics["reconciled"] {
  const drifts = new Counter({
    name: "minutebook_quota_drift_total",
    help: "What the reconciler found to differ and repaired, by kind",
    labelNames: ["kind"],
    registers,
  });
  const alarm = new Gauge({
    name: "minutebook_quota_drift_alarm",
    help: "1 while the last round found more drift than may pass unseen",
    registers,
  });
  const namespaces = new Gauge({
    name: "minutebook_quota_reconciled_namespaces",
    help: "Namespaces of this process' last round",
    registers,
  });
  const rounds = new Histogram({
    name: "minutebook_quota_reconcile_seconds",
    help: "Time of one round over all namespaces",
    buckets: ROUND_SECONDS,
    registers,
  });
  return ({ alarming, drift, elapsedMs, namespaces: count }) => {
    for (const [kind, found] of drift) drifts.inc({ kind }, found);
    alarm.set(alarming ? 1 : 0);
    if (count === undefined) return;
    namespaces.set(count);
    rounds.observe(elapsedMs / 1_000);
  };
}

function watchQuota(registers: Registry[], { ledger, redis, stopsDropped }: QuotaSources): void {
  new Gauge({
    name: "minutebook_redis_state",
    help: "1 at what this process has of Redis: up, away, or none configured",
    labelNames: ["state"],
    registers,
    collect() {
      const now = redis();
      for (const state of STATES) this.set({ state }, state === now ? 1 : 0);
    },
  });
  new Gauge({
    name: "minutebook_quota_ledger_namespaces",
    help: "Namespaces whose figures this process holds",
    registers,
    collect() {
      this.set(ledger().namespaces);
    },
  });
  new Gauge({
    name: "minutebook_quota_stops_dropped",
    help: "Stops of which no receipt was kept",
    registers,
    collect() {
      this.set(stopsDropped());
    },
  });
  new Gauge({
    name: "minutebook_quota_ledger_logs",
    help: "Logs that this process follows for them",
    registers,
    collect() {
      this.set(ledger().logs);
    },
  });
}

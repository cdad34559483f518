/** Logs and figures for operators. A token or a signed text is in neither. */
import { type DestinationStream, type Logger, pino } from "pino";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Anchors } from "./flow/log/anchor.ts";
import type { SealLag } from "./flow/log/seal-loop.ts";
import type { SubmissionLag } from "./flow/log/witness-loop.ts";
import type { Ingested } from "./flow/report/ingest.ts";
import type { LateExports } from "./store/late-exports.ts";
import { type QuotaMetrics, type QuotaSources, quotaMetrics } from "./telemetry-quota.ts";
import { type ReconciliationMetrics, reconciliationMetrics } from "./telemetry-reconciliation.ts";

export type { Logger } from "pino";

/** Wherever one of these stands, one or two objects deep, the log says `[redacted]` instead. */
const SECRET = [
  "authorization",
  "token",
  "jws",
  "claim",
  "rotation",
  "reports",
  "heartbeats",
  "password",
  "url",
];
const PATHS = SECRET.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);

const STANDARD_ERROR = 2;

/** @param destination standard error when absent: what a command answers goes to standard output */
export function openLog(
  level: string,
  destination: DestinationStream = pino.destination(STANDARD_ERROR),
): Logger {
  return pino(
    {
      level,
      base: null,
      redact: { paths: PATHS, censor: "[redacted]" },
      timestamp: pino.stdTimeFunctions.isoTime,
    },
    destination,
  );
}

/** What the figures are read from whenever somebody asks. */
export interface Sources extends QuotaSources {
  sealLag: () => SealLag;
  /** Logs that are refused now, by code. */
  refused: () => Iterable<string>;
  verifierPending: () => number;
  reportsUnderWay: () => number;
  refusalsDropped: () => number;
  anchors: () => Anchors;
  reviewsOverdue: () => number;
  surroundings: () => { drift: readonly string[]; failed: number };
  lateExports: () => LateExports;
}

export interface Metrics extends WitnessMetrics, QuotaMetrics, ReconciliationMetrics {
  reported(ingested: Ingested): void;
  answered(route: string, status: number, elapsedMs: number): void;
  committed(batch: { reports: number; elapsedMs: number }): void;
  /** `entries` were folded; 0 when there was nothing new. */
  folded(entries: bigint, elapsedMs: number, at: number): void;
  text(): Promise<{ type: string; text: string }>;
}

/** By the name that the policy gives a witness. */
interface WitnessMetrics {
  cosigned(witness: string): void;
  notCosigned(witness: string, reason: string): void;
  witnessLag(witness: string, lag: SubmissionLag): void;
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const BATCH = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000];

export function openMetrics(sources: Sources): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  watch(registry, sources);
  const reports = new Counter({
    name: "minutebook_reports_total",
    help: "Reports answered, by code",
    labelNames: ["code"],
    registers,
  });
  const requests = new Histogram({
    name: "minutebook_http_request_seconds",
    help: "Time to an answer, by route and status",
    labelNames: ["route", "status"],
    buckets: SECONDS,
    registers,
  });
  const batches = new Histogram({
    name: "minutebook_append_batch_reports",
    help: "Reports of one commit",
    buckets: BATCH,
    registers,
  });
  const commits = new Histogram({
    name: "minutebook_append_commit_seconds",
    help: "Time of one commit of reports, with the wait for the head",
    buckets: SECONDS,
    registers,
  });
  const folded = new Counter({
    name: "minutebook_folded_entries_total",
    help: "Sealed entries taken into the rollups by this process",
    registers,
  });
  const refreshes = new Histogram({
    name: "minutebook_refresh_seconds",
    help: "Time of one refresh of the rollups",
    buckets: SECONDS,
    registers,
  });
  const refreshed = new Gauge({
    name: "minutebook_refreshed_timestamp_seconds",
    help: "When this process last finished a refresh: now less this is the rollups' lag",
    registers,
  });
  return {
    reported: ({ results }) => {
      const counts = new Map<string, number>();
      for (const { code } of results) counts.set(code, (counts.get(code) ?? 0) + 1);
      for (const [code, count] of counts) reports.inc({ code }, count);
    },
    answered: (route, status, elapsedMs) => {
      requests.observe({ route, status }, elapsedMs / 1_000);
    },
    committed: (batch) => {
      batches.observe(batch.reports);
      commits.observe(batch.elapsedMs / 1_000);
    },
    folded: (entries, elapsedMs, at) => {
      folded.inc(Number(entries));
      refreshes.observe(elapsedMs / 1_000);
      refreshed.set(at / 1_000);
    },
    ...witnessMetrics(registers),
    ...quotaMetrics(registry, sources),
    ...reconciliationMetrics(registry),
    text: async () => ({ type: registry.contentType, text: await registry.metrics() }),
  };
}

function witnessMetrics(registers: Registry[]): WitnessMetrics {
  const cosignatures = new Counter({
    name: "minutebook_cosignatures_total",
    help: "Checkpoints that a witness cosigned for this process",
    labelNames: ["witness"],
    registers,
  });
  const refusals = new Counter({
    name: "minutebook_witness_refusals_total",
    help: "Submissions to a witness that ended without a cosignature, by status or reason",
    labelNames: ["witness", "reason"],
    registers,
  });
  const logs = new Gauge({
    name: "minutebook_witness_lag_logs",
    help: "Logs whose newest checkpoint the witness has not cosigned",
    labelNames: ["witness"],
    registers,
  });
  const seconds = new Gauge({
    name: "minutebook_witness_lag_seconds",
    help: "Age of the oldest checkpoint beyond what the witness has cosigned",
    labelNames: ["witness"],
    registers,
  });
  return {
    cosigned: (witness) => cosignatures.inc({ witness }),
    notCosigned: (witness, reason) => refusals.inc({ witness, reason }),
    witnessLag: (witness, lag) => {
      logs.set({ witness }, lag.logs);
      seconds.set({ witness }, lag.ms / 1_000);
    },
  };
}

/** Gauges that are read when they are asked for. */
function watch(registry: Registry, sources: Sources): void {
  const gauge = (name: string, help: string, read: () => number): void => {
    new Gauge({
      name: `minutebook_${name}`,
      help,
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  };
  gauge("seal_lag_logs", "Logs with unsealed entries when the last round began", () => {
    return sources.sealLag().logs;
  });
  gauge("seal_lag_entries", "Unsealed entries when the last round began", () => {
    return Number(sources.sealLag().entries);
  });
  gauge("seal_lag_seconds", "Age of the oldest unsealed entry when the last round began", () => {
    return sources.sealLag().ms / 1_000;
  });
  gauge("verifier_pending", "Signed texts that wait for a verifier or are in one", () => {
    return sources.verifierPending();
  });
  gauge("reports_under_way", "Reports taken in and not answered yet", () => {
    return sources.reportsUnderWay();
  });
  gauge("unanchored_logs", "Logs whose newest checkpoint nobody outside holds", () => {
    return sources.anchors().logs;
  });
  gauge("anchor_lag_seconds", "Age of the oldest checkpoint beyond what is held outside", () => {
    return sources.anchors().lag_ms / 1_000;
  });
  gauge("unpublished_logs", "Logs with a checkpoint that no quorum has signed yet", () => {
    return sources.anchors().unpublished.logs;
  });
  gauge(
    "publication_lag_seconds",
    "Age of the oldest checkpoint that readers are not shown",
    () => {
      return sources.anchors().unpublished.lag_ms / 1_000;
    },
  );
  gauge("access_reviews_overdue", "Logs whose access nobody reviewed for a quarter", () => {
    return sources.reviewsOverdue();
  });
  gauge("environment_drift", "Kinds of guards that are otherwise than at the start", () => {
    return sources.surroundings().drift.length;
  });
  gauge("verification_failed_logs", "Logs that did not pass when they were last verified", () => {
    return sources.surroundings().failed;
  });
  gauge("exports_failing", "Exports of schedules and closed months that are not made", () => {
    return sources.lateExports().failing;
  });
  gauge("exports_undelivered", "Exports that are not where they are to be for a day", () => {
    return sources.lateExports().undelivered;
  });
  gauge("refusals_dropped", "Refusals that the register did not keep", () => {
    return sources.refusalsDropped();
  });
  new Gauge({
    name: "minutebook_refused_logs",
    help: "Logs that are neither appended to nor signed, by code",
    labelNames: ["code"],
    registers: [registry],
    collect() {
      this.reset();
      for (const code of sources.refused()) this.inc({ code });
    },
  });
}

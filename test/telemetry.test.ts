import { expect, test } from "vitest";
import { openLog, openMetrics } from "../src/telemetry.ts";

function logged(write: (log: ReturnType<typeof openLog>) => void): string {
  let text = "";
  const destination = {
    write: (line: string) => {
      text += line;
    },
  };
  write(openLog("info", destination));
  return text;
}

const SECRETS = [
  "authorization",
  "token",
  "jws",
  "claim",
  "rotation",
  "reports",
  "heartbeats",
  "password",
  "url",
] as const;

test.each(SECRETS)("%s is in no line of the log, however it got there", (name) => {
  const text = logged((log) => {
    log.info({ [name]: "hush" }, "one");
    log.warn({ headers: { [name]: "hush" } }, "two");
    log.error({ request: { headers: { [name]: ["hush"] } } }, "three");
    log.error({ err: Object.assign(new Error("four"), { [name]: "hush" }) });
  });
  expect(text).not.toContain("hush");
  expect(text.match(/\[redacted\]/g)).toHaveLength(4);
});

test("a line is one JSON object with time and level", () => {
  const text = logged((log) => log.info({ log: "0a" }, "sealed"));
  expect(JSON.parse(text)).toEqual({
    level: 30,
    time: expect.stringMatching(/^\d{4}-\d{2}-\d{2}T.*Z$/),
    log: "0a",
    msg: "sealed",
  });
});

test("gauges are read when they are asked for, and a code that is over is not kept", async () => {
  const refused = ["log-behind", "log-behind"];
  const lag = { logs: 2, entries: 7n, ms: 1_500 };
  let redis: "up" | "away" = "up";
  const metrics = openMetrics({
    sealLag: () => lag,
    refused: () => refused,
    verifierPending: () => 3,
    reportsUnderWay: () => 4,
    refusalsDropped: () => 5,
    anchors: () => ({
      ...{ state: "witnessed", logs: 6, lag_ms: 2_500 },
      unpublished: { logs: 8, lag_ms: 3_500 },
    }),
    reviewsOverdue: () => 0,
    surroundings: () => ({ drift: [], failed: 0 }),
    lateExports: () => ({ failing: 0, undelivered: 0 }),
    redis: () => redis,
    ledger: () => ({ namespaces: 9, logs: 10 }),
    stopsDropped: () => 3,
  });
  const first = (await metrics.text()).text;
  expect(first).toContain('minutebook_refused_logs{code="log-behind"} 2');
  expect(first).toContain("minutebook_seal_lag_seconds 1.5");
  expect(first).toContain("minutebook_seal_lag_entries 7");
  expect(first).toContain("minutebook_unanchored_logs 6");
  expect(first).toContain("minutebook_anchor_lag_seconds 2.5");
  expect(first).toContain("minutebook_unpublished_logs 8");
  expect(first).toContain("minutebook_publication_lag_seconds 3.5");
  expect(first).toContain('minutebook_redis_state{state="up"} 1');
  expect(first).toContain("minutebook_quota_ledger_namespaces 9");
  expect(first).toContain("minutebook_quota_ledger_logs 10");
  expect(first).toContain("minutebook_quota_stops_dropped 3");
  refused.length = 0;
  lag.ms = 0;
  redis = "away";
  const second = (await metrics.text()).text;
  expect(second).not.toContain("log-behind");
  expect(second).toContain("minutebook_seal_lag_seconds 0");
  expect(second).toContain('minutebook_redis_state{state="up"} 0');
  expect(second).toContain('minutebook_redis_state{state="away"} 1');
});

test("decisions are counted by ask, answer and source, drift by kind, and no namespace is a label", async () => {
  const metrics = openMetrics({
    sealLag: () => ({ logs: 0, entries: 0n, ms: 0 }),
    refused: () => [],
    verifierPending: () => 0,
    reportsUnderWay: () => 0,
    refusalsDropped: () => 0,
    anchors: () => ({ state: "none", logs: 0, lag_ms: 0, unpublished: { logs: 0, lag_ms: 0 } }),
    reviewsOverdue: () => 0,
    surroundings: () => ({ drift: [], failed: 0 }),
    lateExports: () => ({ failing: 0, undelivered: 0 }),
    redis: () => "none",
    ledger: () => ({ namespaces: 0, logs: 0 }),
    stopsDropped: () => 0,
  });
  const start = { ask: "start", source: "redis" } as const;
  const decisions = [
    { ...start, allowed: true },
    { ...start, allowed: false },
  ] as const;
  metrics.decided([...decisions, ...decisions, { ask: "run", allowed: true }], 7);
  const round = { namespaces: 12, elapsedMs: 1_200 };
  metrics.reconciled({ ...round, drift: [["figures", 2]], alarming: true });
  metrics.reconciled({ ...round, drift: [["figures", 1]], alarming: false });
  metrics.notified("quota.warning");
  metrics.delivered("delivered");
  const { text } = await metrics.text();
  for (const line of [
    'quota_decisions_total{ask="start",answer="allowed",source="redis"} 2',
    'quota_decisions_total{ask="start",answer="refused",source="redis"} 2',
    'quota_decisions_total{ask="run",answer="allowed",source="none"} 1',
    'quota_decision_seconds_bucket{le="0.01"} 1',
    'quota_drift_total{kind="figures"} 3',
    "quota_drift_alarm 0",
    "quota_reconciled_namespaces 12",
    "quota_reconcile_seconds_count 2",
    'quota_notifications_total{event="quota.warning"} 1',
    'webhook_deliveries_total{outcome="delivered"} 1',
  ]) {
    expect(text).toContain(`minutebook_${line}`);
  }
});

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
  });
  const first = (await metrics.text()).text;
  expect(first).toContain('minutebook_refused_logs{code="log-behind"} 2');
  expect(first).toContain("minutebook_seal_lag_seconds 1.5");
  expect(first).toContain("minutebook_seal_lag_entries 7");
  expect(first).toContain("minutebook_unanchored_logs 6");
  expect(first).toContain("minutebook_anchor_lag_seconds 2.5");
  expect(first).toContain("minutebook_unpublished_logs 8");
  expect(first).toContain("minutebook_publication_lag_seconds 3.5");
  refused.length = 0;
  lag.ms = 0;
  const second = (await metrics.text()).text;
  expect(second).not.toContain("log-behind");
  expect(second).toContain("minutebook_seal_lag_seconds 0");
});

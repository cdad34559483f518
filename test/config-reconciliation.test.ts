import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readConfig } from "../src/config.ts";
import { ConfigError } from "../src/config-error.ts";
import { hookSecrets } from "../src/config-reconciliation.ts";
import { LOG } from "./core/history.ts";

const folder = mkdtempSync(join(tmpdir(), "minutebook-gitlab-"));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const TOKEN = file("token", "glpat-0123456789\n");
const SECRET = file("secret", "hook-0123456789\n");
const configured = (...listed: object[]) => {
  const GITLAB_FILE = file("gitlab.json", JSON.stringify(listed));
  return readConfig({ GITLAB_FILE }).reconciliation;
};

test("a log's platform is where it is pulled from, by which token, and what its webhooks say", () => {
  const platform = {
    log: LOG,
    url: "https://gitlab.example/",
    token_file: TOKEN,
    webhook_secret_file: SECRET,
    capacity: { "700": "10" },
  };
  const reconciliation = configured(platform);
  expect(reconciliation.platforms).toEqual([
    {
      log: LOG,
      pull: { url: "https://gitlab.example", token: "glpat-0123456789" },
      webhookSecret: "hook-0123456789",
      capacity: new Map([["700", 10n]]),
    },
  ]);
  expect(hookSecrets(reconciliation)).toEqual(new Map([[LOG, "hook-0123456789"]]));
  expect(hookSecrets(configured({ log: LOG }))).toEqual(new Map());
});

test.each<[string, object]>([
  ["a token without an address", { token_file: TOKEN }],
  ["an address without a token", { url: "https://gitlab.example" }],
  ["a token in the clear", { url: "http://gitlab.example", token_file: TOKEN }],
  ["an address with a query", { url: "https://gitlab.example/?a", token_file: TOKEN }],
  ["a secret of two words", { webhook_secret_file: file("words", "two words here") }],
  ["a secret of nothing", { webhook_secret_file: file("nothing", "") }],
  ["a capacity of nothing", { capacity: { "700": "0" } }],
  ["an unknown member", { more: true }],
])("%s is refused, and no secret is in what is said", (_, wrong) => {
  const refused = (): unknown => configured({ log: LOG, ...wrong });
  expect(refused).toThrow(ConfigError);
  expect(refused).not.toThrow(/glpat|words here/);
});

test("a log has one platform", () => {
  expect(() => configured({ log: LOG }, { log: LOG })).toThrow("a log twice");
});

test("what may pass is said in the environment", () => {
  const { anomalies, bounds, pullMonthLookbackMs } = readConfig({
    PULL_MONTH_LOOKBACK_DAYS: "365",
    RECONCILE_TOLERANCE_SECONDS: "0",
    RECONCILE_GRACE_HOURS: "2",
    RECONCILE_JUMP_FACTOR: "3",
  }).reconciliation;
  expect(bounds).toEqual({ tolerance_ms: 0n, grace_ms: 7_200_000 });
  expect(anomalies.jump_factor).toBe(3n);
  expect(pullMonthLookbackMs).toBe(365 * 86_400_000);
  for (const days of ["0", "366", "1.5"]) {
    expect(() => readConfig({ PULL_MONTH_LOOKBACK_DAYS: days })).toThrow(ConfigError);
  }
});

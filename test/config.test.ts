import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readConfig } from "../src/config.ts";
import { ConfigError } from "../src/config-error.ts";
import { readIssuers, readKeySet } from "../src/config-files.ts";
import { ANOMALY_BOUNDS } from "../src/core/anomaly.ts";
import { ROLES } from "../src/core/control.ts";
import { formatVkey } from "../src/core/note.ts";
import { testKey } from "./signing.ts";

const folder = mkdtempSync(join(tmpdir(), "minutebook-config-"));
afterAll(() => rmSync(folder, { recursive: true }));

const EXTERNAL = {
  DATABASE_URL: "postgres://writer:hush@db/minutebook",
  ARCHIVE_URL: "/archive",
  LOG_KEY_FILE: "/keys/log.pem",
  RECEIPT_KEY_FILE: "/keys/receipt.pem",
  PRINCIPAL_KEY_FILE: "/keys/principal.key",
  ISSUERS_FILE: "/etc/issuers.json",
};

function file(name: string, value: unknown): string {
  const path = join(folder, name);
  writeFileSync(path, typeof value === "string" ? value : JSON.stringify(value));
  return path;
}

test("with nothing set, all is embedded, on this machine only, at a free port", () => {
  expect(readConfig({})).toEqual({
    mode: "development",
    host: "127.0.0.1",
    port: 0,
    serviceName: "minutebook.localhost",
    external: undefined,
    readerDatabaseUrl: undefined,
    ownerDatabaseUrl: undefined,
    witnessPolicy: undefined,
    witnessIntervalMs: 30_000,
    verifierThreads: undefined,
    closeDelayDays: 3,
    creditMinutes: undefined,
    quota: { redis: undefined, withoutRedis: "plan", startReserveMs: 60_000 },
    rates: { caller: 2_000, machine: 100_000, seconds: 10 },
    webhook: undefined,
    reconciliation: {
      platforms: [],
      pullIntervalMs: 3_600_000,
      pullLookbackMs: 86_400_000,
      pullMonthLookbackMs: 7_776_000_000,
      bounds: { tolerance_ms: 5_000n, grace_ms: 86_400_000 },
      anomalies: ANOMALY_BOUNDS,
      alarmMs: 259_200_000,
    },
    exports: { url: undefined, keptMs: 7_776_000_000, rules: [] },
    logLevel: "info",
  });
});

test("production is what either variable calls so, and ours goes before Node's", () => {
  expect(readConfig({ ...EXTERNAL, NODE_ENV: "production" }).mode).toBe("production");
  expect(readConfig({ ...EXTERNAL, MINUTEBOOK_MODE: "production" }).mode).toBe("production");
  const both = { NODE_ENV: "production", MINUTEBOOK_MODE: "development" };
  expect(readConfig(both).mode).toBe("development");
});

test.each(Object.keys(EXTERNAL))(
  "what is external is so in all parts: %s alone cannot be missing",
  (name) => {
    const { [name]: _, ...rest } = { ...EXTERNAL } as Record<string, string>;
    expect(() => readConfig(rest)).toThrow(`set these too, or none of them: ${name}`);
  },
);

test("keys are in files, with the next ones behind them and the former ones beside, or all with one command", () => {
  const files = {
    NEXT_LOG_KEY_FILE: "/keys/next.pem",
    NEXT_RECEIPT_KEY_FILE: "/keys/next-r.pem",
    FORMER_LOG_KEY_FILE: "/keys/former.pem",
  };
  expect(readConfig({ ...EXTERNAL, ...files }).external?.keys).toEqual({
    kind: "files",
    checkpoint: ["/keys/log.pem", "/keys/next.pem"],
    receipt: ["/keys/receipt.pem", "/keys/next-r.pem"],
    former: { checkpoint: "/keys/former.pem", receipt: undefined },
  });
  const { LOG_KEY_FILE: _, RECEIPT_KEY_FILE: __, ...rest } = EXTERNAL;
  const SIGNER_COMMAND = '["/usr/bin/signer","--slot","2"]';
  expect(readConfig({ ...rest, SIGNER_COMMAND }).external?.keys).toEqual({
    kind: "command",
    words: ["/usr/bin/signer", "--slot", "2"],
  });
  const both = { ...rest, SIGNER_COMMAND, NEXT_LOG_KEY_FILE: "/keys/next.pem" };
  expect(() => readConfig(both)).toThrow("do not set NEXT_LOG_KEY_FILE");
  expect(() => readConfig({ SIGNER_COMMAND })).toThrow("set these too, or none of them: DATABASE");
});

test.each(["/usr/bin/signer --slot 2", "[]", '[""]', '["signer",2]', "{}"])(
  "a signer is words of a JSON array, and %s is none",
  (SIGNER_COMMAND) => {
    const { LOG_KEY_FILE: _, RECEIPT_KEY_FILE: __, ...rest } = EXTERNAL;
    expect(() => readConfig({ ...rest, SIGNER_COMMAND })).toThrow("SIGNER_COMMAND: a JSON array");
  },
);

test("every bad value is named, and no value is quoted", () => {
  const secret = "mysql://user:hush@db";
  const bad = { PORT: "70000", SERVICE_NAME: "has space", DATABASE_URL: secret, LOG_LEVEL: "loud" };
  const read = () => readConfig(bad);
  expect(read).toThrow(ConfigError);
  for (const name of Object.keys(bad)) expect(read).toThrow(name);
  expect(read).not.toThrow("hush");
});

test("live usage is kept in one Redis or in one Cluster, never in two places", () => {
  const REDIS_URL = "rediss://:hush@redis.example:6380/0";
  expect(readConfig({ REDIS_URL }).quota.redis).toEqual({ kind: "single", url: REDIS_URL });
  const REDIS_CLUSTER_URLS = "redis://a.example:7000, redis://b.example:7001";
  expect(readConfig({ REDIS_CLUSTER_URLS }).quota.redis).toEqual({
    kind: "cluster",
    urls: ["redis://a.example:7000", "redis://b.example:7001"],
  });
  const both = () => readConfig({ REDIS_URL, REDIS_CLUSTER_URLS });
  expect(both).toThrow("set REDIS_URL or REDIS_CLUSTER_URLS, not both");
  expect(both).not.toThrow("hush");
});

test("what quota does without Redis, and what a start holds back, are the operator's to say", () => {
  const said = { QUOTA_WITHOUT_REDIS: "closed", QUOTA_START_RESERVE_MINUTES: "0" };
  expect(readConfig(said).quota).toMatchObject({ withoutRedis: "closed", startReserveMs: 0 });
  const most = readConfig({ QUOTA_START_RESERVE_MINUTES: "60" });
  expect(most.quota.startReserveMs).toBe(3_600_000);
});

test("notifications are signed, and leave this machine over TLS only", () => {
  const WEBHOOK_SECRET_FILE = "/keys/webhook";
  for (const url of ["https://portal.example/hook", "http://127.0.0.1:8080/hook"]) {
    const config = readConfig({ WEBHOOK_URL: url, WEBHOOK_SECRET_FILE });
    expect(config.webhook).toEqual({ url, secretFile: WEBHOOK_SECRET_FILE });
  }
  const clear = { WEBHOOK_URL: "http://portal.example/hook", WEBHOOK_SECRET_FILE };
  expect(() => readConfig(clear)).toThrow("WEBHOOK_URL: https, unless it is this machine");
  const unsigned = { WEBHOOK_URL: "https://portal.example/hook" };
  expect(() => readConfig(unsigned)).toThrow("WEBHOOK_URL needs WEBHOOK_SECRET_FILE");
  expect(() => readConfig({ WEBHOOK_SECRET_FILE })).toThrow(
    "WEBHOOK_SECRET_FILE needs WEBHOOK_URL",
  );
});

test.each([
  ["REDIS_URL", "http://redis.example"],
  ["REDIS_CLUSTER_URLS", "redis://a.example:7000,"],
  ["QUOTA_WITHOUT_REDIS", "perhaps"],
  ["QUOTA_START_RESERVE_MINUTES", "61"],
  ["QUOTA_START_RESERVE_MINUTES", "-1"],
  ["QUOTA_START_RESERVE_MINUTES", "0.5"],
  ["WEBHOOK_URL", "not a url"],
])("%s is not %s", (name, value) => {
  expect(() => readConfig({ [name]: value })).toThrow(name);
});

const ISSUER = {
  issuer: "https://issuer.example",
  audience: "minutebook",
  algorithms: ["ES256"],
  jwks: { uri: "https://issuer.example/keys" },
  grants: [{ claim: "groups", value: "auditors", role: "auditor", logs: "*", namespaces: "*" }],
};

test("an issuer says audience, algorithms, keys and what its claims grant", () => {
  const [issuer] = readIssuers(file("good.json", [ISSUER]));
  expect(issuer).toEqual(ISSUER);
});

test.each<[string, object]>([
  ["no algorithm", { algorithms: [] }],
  ["a symmetric algorithm", { algorithms: ["HS256"] }],
  ["no signature at all", { algorithms: ["none"] }],
  ["keys fetched in the clear", { jwks: { uri: "http://issuer.example/keys" } }],
  ["no grants", { grants: [] }],
  ["the name of development's own", { issuer: "minutebook-local" }],
  ["a role that there is not", { grants: [{ ...ISSUER.grants[0], role: "root" }] }],
  ["a role by name", { grants: [{ ...ISSUER.grants[0], claim: "preferred_username" }] }],
  ["a role by an address", { grants: [{ ...ISSUER.grants[0], value: "anna@example.com" }] }],
  ["a log that is no log", { grants: [{ ...ISSUER.grants[0], logs: ["all"] }] }],
  [
    "a grant that is silent about namespaces",
    { grants: [{ ...ISSUER.grants[0], namespaces: undefined }] },
  ],
  ["more than that", { trusted: true }],
])("an issuer with %s is refused", (_, change) => {
  const path = file("bad.json", [{ ...ISSUER, ...change }]);
  expect(() => readIssuers(path)).toThrow(ConfigError);
});

test.each(ROLES)("%s: namespaces bind viewers, and no file can say so of others", (role) => {
  const grants = [{ ...ISSUER.grants[0], role, namespaces: ["7"] }];
  const read = () => readIssuers(file("bound.json", [{ ...ISSUER, grants }]));
  if (role === "viewer") expect(read()[0]?.grants).toEqual(grants);
  else expect(read).toThrow("only a viewer can be bound to namespaces");
});

test("a file that is missing, no JSON, or without keys is refused by its name", () => {
  const missing = join(folder, "missing.json");
  expect(() => readIssuers(missing)).toThrow(missing);
  expect(() => readIssuers(file("torn.json", "[{"))).toThrow("torn.json");
  expect(() => readKeySet(file("empty.json", { keys: [] }))).toThrow("empty.json");
});

const POLICY = (url: string) =>
  `witness ada ${formatVkey("ada.test", testKey(61).publicKey, "cosignature")} ${url}\nquorum ada\n`;

/** Found by trying names: the ids of both keys are bee951d1. */
const TWINS = [
  `witness ada ${formatVkey("w228062.test", testKey(62).publicKey, "cosignature")}\n`,
  `witness bob ${formatVkey("w24809.test", testKey(63).publicKey, "cosignature")}\n`,
  "quorum ada\n",
].join("");

test("a policy says whom checkpoints are submitted to, and how often", () => {
  const path = file("policy", POLICY("https://ada.example/submit"));
  const config = readConfig({ WITNESS_POLICY_FILE: path, WITNESS_INTERVAL_SECONDS: "5" });
  expect(config.witnessPolicy?.witnesses).toMatchObject([
    { name: "ada", url: "https://ada.example/submit", vkey: { name: "ada.test" } },
  ]);
  expect(config.witnessIntervalMs).toBe(5_000);
});

test.each([
  ["a line that is none", "quorum nobody\n", "line 1"],
  ["no quorum", "", "no quorum"],
  ["a witness that no request reaches", POLICY("ftp://ada.example"), "ada cannot be asked"],
  [
    "a quorum that needs a witness whom nobody can ask",
    POLICY("https://ada.example").replace(
      "quorum ada",
      `witness bob ${formatVkey("bob.test", testKey(62).publicKey, "cosignature")}\ngroup both all ada bob\nquorum both`,
    ),
    "a witness that has no URL",
  ],
  ["two keys of one id", TWINS, "bob has the key id of another witness"],
])("a policy with %s is refused by its name", (_, text, reason) => {
  const path = file("bad-policy", text);
  const read = () => readConfig({ WITNESS_POLICY_FILE: path });
  expect(read).toThrow(ConfigError);
  expect(read).toThrow(path);
  expect(read).toThrow(reason);
});

test("a policy that is missing is refused by its name", () => {
  const missing = join(folder, "missing-policy");
  expect(() => readConfig({ WITNESS_POLICY_FILE: missing })).toThrow(missing);
});

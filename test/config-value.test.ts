import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { readConfig, readSurroundings } from "../src/config.ts";
import { ConfigError } from "../src/config-error.ts";
import { readIssuers } from "../src/config-files.ts";
import { formatVkey } from "../src/core/note.ts";
import { testKey } from "./signing.ts";

const folder = mkdtempSync(join(tmpdir(), "minutebook-config-value-"));
afterAll(() => rmSync(folder, { recursive: true }));

const NUMBERS = [
  "PORT",
  "WITNESS_INTERVAL_SECONDS",
  "VERIFIER_THREADS",
  "QUOTA_START_RESERVE_MINUTES",
];
const NOT_DECIMAL = [
  "",
  " ",
  "0x10",
  "1e1",
  " 1",
  "1 ",
  "+1",
  "-1",
  "01",
  "1.0",
  "1_0",
  "١",
  "9".repeat(30),
];

test.each(NUMBERS)(
  "%s is decimal digits: nothing else is taken for a number, nothing for 0",
  (name) => {
    for (const value of NOT_DECIMAL) {
      const read = () => readConfig({ [name]: value });
      expect(read, JSON.stringify(value)).toThrow(ConfigError);
      expect(read, JSON.stringify(value)).toThrow(`${name}: a whole number from`);
    }
    expect(() => readConfig({ [name]: "1" })).not.toThrow();
  },
);

test("every number between the bounds is read as itself, and none beyond them is", () => {
  fc.assert(
    fc.property(fc.nat(100), (minutes) => {
      const read = () => readConfig({ QUOTA_START_RESERVE_MINUTES: String(minutes) }).quota;
      if (minutes <= 60) expect(read().startReserveMs).toBe(minutes * 60_000);
      else expect(read).toThrow(ConfigError);
    }),
  );
});

const SECRET_URLS = [
  "https://hook:hush@hooks.example/x",
  "https://hush@hooks.example",
  "http://:hush@127.0.0.1",
];

function policy(url: string): string {
  const path = join(folder, "policy");
  const vkey = formatVkey("ada.test", testKey(61).publicKey, "cosignature");
  writeFileSync(path, `witness ada ${vkey} ${url}\nquorum ada\n`);
  return path;
}

function issuers(uri: string): string {
  const path = join(folder, "issuers.json");
  const grants = [{ claim: "g", value: "v", role: "auditor", logs: "*", namespaces: "*" }];
  const issuer = { issuer: "i", audience: "a", algorithms: ["ES256"], jwks: { uri }, grants };
  writeFileSync(path, JSON.stringify([issuer]));
  return path;
}

test.each(SECRET_URLS)(
  "no address that requests go to may hold a user or a password, and it is not printed: %s",
  (url) => {
    for (const read of [
      () => readConfig({ WEBHOOK_URL: url, WEBHOOK_SECRET_FILE: "/keys/webhook" }),
      () => readConfig({ WITNESS_POLICY_FILE: policy(url) }),
      () => readSurroundings({ MINUTEBOOK_SERVER: url }),
      () => readIssuers(issuers(url.replace("http:", "https:"))),
    ]) {
      expect(read).toThrow(ConfigError);
      expect(read).toThrow("an address without user and password");
      expect(read).not.toThrow("hush");
    }
  },
);

const NODE = "redis://minutebook:hush@a.example:7000";

test.each([
  ["another user", "redis://other:hush@b.example:7001"],
  ["another password", "redis://minutebook:other@b.example:7001"],
  ["no password", "redis://b.example:7001"],
  ["another scheme", "rediss://minutebook:hush@b.example:7001"],
  ["a database", "redis://minutebook:hush@b.example:7001/1"],
  ["an option", "redis://minutebook:hush@b.example:7001?family=6"],
])("the nodes of a Cluster are one: %s beside the first is refused, in any order", (_, other) => {
  for (const urls of [`${NODE},${other}`, `${other},${NODE}`]) {
    const read = () => readConfig({ REDIS_CLUSTER_URLS: urls });
    expect(read).toThrow("REDIS_CLUSTER_URLS: one scheme, user and password for all nodes");
    expect(read).not.toThrow("hush");
  }
});

test("a Cluster is reached over TLS if all its nodes are named so", () => {
  const urls = ["rediss://m:p%40ss@a.example:7000", "rediss://m:p%40ss@b.example:7001/"];
  const { redis } = readConfig({ REDIS_CLUSTER_URLS: urls.join(",") }).quota;
  expect(redis).toEqual({ kind: "cluster", urls });
});

test.each(["REDIS_URL", "REDIS_CLUSTER_URLS"])(
  "%s whose password cannot be read is refused, not printed",
  (name) => {
    const read = () => readConfig({ [name]: "redis://m:hush%zz@a.example" });
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(name);
    expect(read).not.toThrow("hush");
  },
);

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { dataFolder } from "../../src/command/folder.ts";
import { localIssuer, localToken } from "../../src/command/issuer.ts";
import { ROLES } from "../../src/core/control.ts";
import { ensureSigningKey } from "../../src/custody.ts";
import { type Authenticate, authenticator } from "../../src/flow/authenticate.ts";
import { testKey } from "../signing.ts";
import { minutebook } from "./terminal.ts";

const LOG = "a".repeat(32);
const AUDITOR = [{ role: "auditor", logs: "*", namespaces: "*" }] as const;
/** Of a token, where no log says itself who may do what. */
const EVERYWHERE = { logs: "*", except: new Set(), namespaces: "*" };

let data: string;
let authenticate: Authenticate;

beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), "minutebook-token-"));
  const key = ensureSigningKey(dataFolder(data).keys.issuer);
  authenticate = authenticator([localIssuer(key)], new Uint8Array(32));
});

afterAll(() => rm(data, { recursive: true }));

async function principalOf(...args: string[]) {
  const { status, stdout } = await minutebook(["token", "--data", data, ...args]);
  expect(status).toBe(0);
  return await authenticate(`Bearer ${stdout.trim()}`);
}

test("a token gives its roles on all logs, or on those that were named", async () => {
  const everywhere = await principalOf("--role", "operator", "--role", "finance");
  expect(everywhere.grants).toEqual([
    { role: "operator", ...EVERYWHERE },
    { role: "finance", ...EVERYWHERE },
  ]);
  const viewer = ["--role", "viewer", "--log", LOG, "--namespace", "7", "--namespace", "8"];
  expect((await principalOf(...viewer)).grants).toEqual([
    { role: "viewer", logs: [LOG], namespaces: ["7", "8"] },
  ]);
});

test("a namespace binds viewers: no command makes, and no service takes, such a token of another role", async () => {
  const args = ["--role", "viewer", "--role", "auditor", "--namespace", "7"];
  const { status, stdout, stderr } = await minutebook(["token", "--data", data, ...args]);
  expect([status, stdout]).toEqual([2, ""]);
  expect(stderr).toBe("invalid-usage: --namespace is for viewers only, not for auditor\n");

  const key = ensureSigningKey(dataFolder(data).keys.issuer);
  for (const role of ROLES.filter((other) => other !== "viewer")) {
    const token = await localToken(key, [{ role, logs: "*", namespaces: ["7"] }]);
    await expect(authenticate(`Bearer ${token}`)).rejects.toThrow("unauthenticated");
  }
});

test("two subjects are two persons", async () => {
  const [first, second, again] = [
    await principalOf("--role", "approver", "--subject", "first"),
    await principalOf("--role", "approver", "--subject", "second"),
    await principalOf("--role", "approver", "--subject", "first"),
  ];
  expect(first.id).not.toBe(second.id);
  expect(first.id).toBe(again.id);
});

test("a token of another key, of yesterday, or that is good for too long is refused", async () => {
  const key = ensureSigningKey(dataFolder(data).keys.issuer);
  const day = 86_400_000;
  const tokens = [
    await localToken(testKey(1).privateKey, AUDITOR),
    await localToken(key, AUDITOR, { now: Date.now() - day }),
    await localToken(key, AUDITOR, { now: Date.now() - 2 * day, seconds: 7 * 86_400 }),
    await localToken(key, AUDITOR, { now: Date.now() + day }),
    await localToken(key, []),
  ];
  for (const token of tokens) {
    await expect(authenticate(`Bearer ${token}`)).rejects.toThrow("unauthenticated");
  }
  const good = await authenticate(`Bearer ${await localToken(key, AUDITOR)}`);
  expect(good.grants).toEqual([{ role: "auditor", ...EVERYWHERE }]);
});

import { createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import {
  ensureSecretKey,
  ensureSigningKey,
  heldKey,
  objectionTo,
  rawPublicKey,
  readSecretKey,
  readSigningKey,
  readWebhookSecrets,
} from "../src/custody.ts";

const folder = mkdtempSync(join(tmpdir(), "minutebook-custody-"));
afterAll(() => rmSync(folder, { recursive: true }));

const at = (name: string): string => join(folder, name);

function pem(type: "ed25519" | "ed448"): string {
  const { privateKey } = type === "ed25519" ? generateKeyPairSync(type) : generateKeyPairSync(type);
  return privateKey.export({ format: "pem", type: "pkcs8" }).toString();
}

test("a key is made once, for its owner alone, and read ever after", () => {
  const first = ensureSigningKey(at("keys/log.pem"));
  expect(rawPublicKey(ensureSigningKey(at("keys/log.pem")))).toEqual(rawPublicKey(first));
  expect(statSync(at("keys/log.pem")).mode & 0o777).toBe(0o600);
  expect(statSync(at("keys")).mode & 0o777).toBe(0o700);
  const secret = ensureSecretKey(at("keys/principal.key"));
  expect(secret).toHaveLength(32);
  expect(ensureSecretKey(at("keys/principal.key"))).toEqual(secret);
  expect(readdirSync(at("keys")).sort()).toEqual(["log.pem", "principal.key"]);
});

test.each([0o640, 0o604, 0o620, 0o666])("a key file of mode %o is refused", (mode) => {
  writeFileSync(at("open.pem"), pem("ed25519"), { mode: 0o600 });
  chmodSync(at("open.pem"), mode);
  expect(() => readSigningKey(at("open.pem"))).toThrow("open.pem: open to others; chmod 600");
});

test("a key in a folder that others may write to is refused, unless only owners may replace there", () => {
  mkdirSync(at("shared"));
  writeFileSync(at("shared/log.pem"), pem("ed25519"), { mode: 0o600 });
  symlinkSync(at("shared/log.pem"), at("link.pem"));
  for (const mode of [0o777, 0o770, 0o702]) {
    chmodSync(at("shared"), mode);
    for (const file of ["shared/log.pem", "link.pem"]) {
      expect(() => readSigningKey(at(file))).toThrow("a folder that others may write to");
    }
  }
  for (const mode of [0o1777, 0o755]) {
    chmodSync(at("shared"), mode);
    expect(() => readSigningKey(at("link.pem"))).not.toThrow();
  }
});

test("a key of somebody else, or in somebody else's folder, is refused; root's is not", () => {
  const [self, other] = [1000, 1001];
  const file = { mode: 0o100600, uid: self };
  const folder = { mode: 0o040755, uid: self };
  expect(objectionTo(file, [folder], self)).toBeUndefined();
  expect(objectionTo({ ...file, uid: 0 }, [{ ...folder, uid: 0 }], self)).toBeUndefined();
  expect(objectionTo({ ...file, uid: other }, [folder], self)).toMatch("somebody else's");
  const theirs = { ...folder, uid: other };
  expect(objectionTo(file, [folder, theirs], self)).toMatch("somebody else's folder");
});

test("what is no Ed25519 key is refused, and nothing of it is quoted", () => {
  const secret = (name: string, text: string): string => {
    writeFileSync(at(name), text, { mode: 0o600 });
    return at(name);
  };
  expect(() => readSigningKey(at("missing.pem"))).toThrow("missing.pem: cannot be read");
  expect(() => readSigningKey(secret("other.pem", pem("ed448")))).toThrow("not an Ed25519 key");
  const torn = secret("torn.pem", "-----BEGIN PRIVATE KEY-----\nhush\n-----END PRIVATE KEY-----\n");
  expect(() => readSigningKey(torn)).toThrow("torn.pem: not a private key in PEM");
  expect(() => readSigningKey(torn)).not.toThrow("hush");
  expect(() => readSecretKey(secret("short.key", "aHVzaA=="))).toThrow("fewer than 32 bytes");
});

test("a key of a file signs, and shows no more than its public half", async () => {
  const key = ensureSigningKey(at("keys/log.pem"));
  const held = heldKey(key);
  const message = new TextEncoder().encode("checkpoint");
  expect(held.publicKey).toEqual(rawPublicKey(key));
  expect(verify(null, message, createPublicKey(key), await held.sign(message))).toBe(true);
  expect(Object.keys(held)).toEqual(["publicKey", "sign"]);
  // Whichever library signs, RFC 8032 leaves it no choice.
  expect(await held.sign(message)).toEqual(new Uint8Array(sign(null, message, key)));
});

test("secrets of webhooks are read from a file of their owner's alone, the current one first", () => {
  const [current, former] = [Buffer.alloc(24, 1), Buffer.alloc(64, 2)];
  const lines = [current, former].map((secret) => `whsec_${secret.toString("base64")}`);
  writeFileSync(at("webhook"), `${lines.join("\n")}\n`, { mode: 0o600 });
  expect(readWebhookSecrets(at("webhook"))).toEqual(
    [current, former].map((b) => Uint8Array.from(b)),
  );
  chmodSync(at("webhook"), 0o640);
  expect(() => readWebhookSecrets(at("webhook"))).toThrow("open to others; chmod 600");
});

test.each([
  ["", "not whsec_"],
  [`${Buffer.alloc(32).toString("base64")}`, "not whsec_"],
  [`whsec_${Buffer.alloc(23).toString("base64")}`, "not whsec_"],
  [`whsec_${Buffer.alloc(65).toString("base64")}`, "not whsec_"],
  [`whsec_${Buffer.alloc(25).toString("base64").replaceAll("=", "")}`, "not whsec_"],
  [`whsec_${Buffer.alloc(24).toString("base64")}\n`.repeat(3), "more than two"],
])("what is no secret of a webhook is refused, and not quoted", (text, reason) => {
  writeFileSync(at("no-webhook"), text, { mode: 0o600 });
  const read = (): unknown => readWebhookSecrets(at("no-webhook"));
  expect(read).toThrow(reason);
  expect(read).not.toThrow("AAAA");
});

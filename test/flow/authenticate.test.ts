import { createHmac, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { SignJWT } from "jose";
import { expect, onTestFinished, test, vi } from "vitest";
import { authenticator, fixedKeys, type Issuer, remoteKeys } from "../../src/flow/authenticate.ts";
import { testKey } from "../signing.ts";

const KEY = testKey(41).privateKey;
const SECRET = new Uint8Array(32);
const LOG = "0".repeat(32);

const jwkOf = (key: KeyObject) => createPublicKey(key).export({ format: "jwk" });

const issuer: Issuer = {
  issuer: "https://issuer.example",
  audience: "minutebook",
  algorithms: ["EdDSA", "Ed25519"],
  key: fixedKeys({ keys: [jwkOf(KEY)] }),
  grants: [
    { claim: "groups", value: "auditors", role: "auditor", logs: "*", namespaces: "*" },
    { claim: "groups", value: "acme", role: "viewer", logs: [LOG], namespaces: ["7"] },
    { claim: "email", value: "boss", role: "finance", logs: "*", namespaces: "*" },
  ],
};

const authenticate = authenticator([issuer], SECRET);

interface Made {
  issuer?: string;
  audience?: string;
  subject?: string | undefined;
  /** Seconds from now. */
  issued?: number;
  expires?: number | undefined;
  key?: KeyObject | Uint8Array;
  alg?: string;
  claims?: Record<string, unknown>;
}

async function token(made: Made = {}): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  const jwt = new SignJWT(made.claims ?? { groups: ["auditors"] })
    .setProtectedHeader({ alg: made.alg ?? "EdDSA" })
    .setIssuer(made.issuer ?? issuer.issuer)
    .setAudience(made.audience ?? issuer.audience)
    .setIssuedAt(now + (made.issued ?? 0));
  if (!("subject" in made)) jwt.setSubject("someone");
  else if (made.subject !== undefined) jwt.setSubject(made.subject);
  if (!("expires" in made)) jwt.setExpirationTime(now + 300);
  else if (made.expires !== undefined) jwt.setExpirationTime(now + made.expires);
  return await jwt.sign(made.key ?? KEY);
}

const bearer = async (made?: Made) => await authenticate(`Bearer ${await token(made)}`);

test("claims become roles, logs and namespaces as the issuer's mapping says", async () => {
  const { grants } = await bearer({ claims: { groups: ["auditors", "acme"], email: "other" } });
  expect(grants.map(({ role, logs, namespaces }) => [role, logs, namespaces])).toEqual([
    ["auditor", "*", "*"],
    ["viewer", [LOG], ["7"]],
  ]);
  expect((await bearer({ claims: { email: "boss" } })).grants[0]?.role).toBe("finance");
  expect((await bearer({ claims: { groups: [] } })).grants).toEqual([]);
});

test("who somebody is, is the same at each sign-in and readable for nobody", async () => {
  const first = await bearer();
  expect((await bearer()).id).toBe(first.id);
  expect(first.id).toMatch(/^p_[A-Za-z0-9_-]{22}$/);
  const other = authenticator([issuer], new Uint8Array(32).fill(1));
  expect((await other(`Bearer ${await token()}`)).id).not.toBe(first.id);
});

const stranger = testKey(42).privateKey;
const publicBytes = Buffer.from(String(jwkOf(KEY).x), "base64url");

test.each<[string, Made]>([
  ["another issuer", { issuer: "https://other.example" }],
  ["another audience", { audience: "another-service" }],
  ["another key", { key: stranger }],
  ["the public key used as a secret", { key: publicBytes, alg: "HS256" }],
  ["no subject", { subject: undefined }],
  ["no end", { expires: undefined }],
  ["an end in the past, beyond the tolerance", { expires: -31 }],
  ["an age of more than a day", { issued: -86_431, expires: 300 }],
  ["a time to come", { issued: 60 }],
])("a token with %s is nobody's", async (_, made) => {
  await expect(bearer(made)).rejects.toMatchObject({ code: "unauthenticated" });
});

test("clocks may differ by half a minute", async () => {
  expect((await bearer({ expires: -5 })).grants).toHaveLength(1);
  expect((await bearer({ issued: 20 })).grants).toHaveLength(1);
});

/** An authenticator, and how often it asked for the issuer's key: once for each signature. */
function counting(): { ask: (text: string) => Promise<string>; verified: () => number } {
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  let verified = 0;
  const key: Issuer["key"] = (header, jws) => {
    verified += 1;
    return issuer.key(header, jws);
  };
  const authenticate = authenticator([{ ...issuer, key }], SECRET);
  const ask = async (text: string): Promise<string> => (await authenticate(`Bearer ${text}`)).id;
  return { ask, verified: () => verified };
}

test("a token that verified is not verified again within five seconds", async () => {
  const { ask, verified } = counting();
  const text = await token();
  const id = await ask(text);
  vi.advanceTimersByTime(4_999);
  expect(await ask(text)).toBe(id);
  expect(verified()).toBe(1);
  vi.advanceTimersByTime(1);
  expect(await ask(text)).toBe(id);
  expect(verified()).toBe(2);
  vi.setSystemTime(Date.now() - 3_600_000);
  await expect(ask(text)).rejects.toThrow("unauthenticated");
});

test("a token that is remembered ends when it says so", async () => {
  const { ask, verified } = counting();
  vi.setSystemTime(1_800_000_000_000);
  const text = await token({ expires: 2 });
  await ask(text);
  vi.advanceTimersByTime(1_999);
  await ask(text);
  expect(verified()).toBe(1);
  vi.advanceTimersByTime(1);
  await ask(text);
  expect(verified(), "within the tolerance it is verified each time").toBe(2);
  await ask(text);
  expect(verified()).toBe(3);
  vi.advanceTimersByTime(30_000);
  await expect(ask(text)).rejects.toThrow("unauthenticated");
});

test("nobody is taken for another whose token is remembered", async () => {
  const { ask } = counting();
  const [text, other] = [await token({ subject: "one" }), await token({ subject: "other" })];
  const [one, two] = [await ask(text), await ask(other)];
  expect(two).not.toBe(one);
  expect([await ask(text), await ask(other)]).toEqual([one, two]);
  const [head, payload] = text.split(".");
  await expect(ask(`${head}.${payload}.${other.split(".")[2]}`)).rejects.toThrow("unauthenticated");
  const forged = await token({ subject: "one", key: stranger });
  await expect(ask(forged)).rejects.toThrow("unauthenticated");
  await expect(ask(forged), "a no is not remembered as a yes").rejects.toThrow("unauthenticated");
});

test("a key that its issuer withdraws verifies nothing after five seconds", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const keys = { held: fixedKeys({ keys: [jwkOf(KEY)] }) };
  const key: Issuer["key"] = (header, jws) => keys.held(header, jws);
  const authenticate = authenticator([{ ...issuer, key }], SECRET);
  const header = `Bearer ${await token()}`;
  await authenticate(header);
  keys.held = fixedKeys({ keys: [jwkOf(stranger)] });
  await authenticate(header);
  vi.advanceTimersByTime(5_000);
  await expect(authenticate(header)).rejects.toThrow("unauthenticated");
});

test("of more than a thousand tokens the one that was verified first is forgotten", async () => {
  const { ask, verified } = counting();
  const texts = await Promise.all(
    Array.from({ length: 1_001 }, (_, i) => token({ subject: String(i) })),
  );
  for (const text of texts) await ask(text);
  expect(verified()).toBe(1_001);
  await ask(String(texts[1]));
  expect(verified()).toBe(1_001);
  await ask(String(texts[0]));
  expect(verified()).toBe(1_002);
});

test("a token without a signature is nobody's", async () => {
  const [, payload] = (await token()).split(".");
  const header = Buffer.from('{"alg":"none"}').toString("base64url");
  await expect(authenticate(`Bearer ${header}.${payload}.`)).rejects.toThrow("unauthenticated");
  const mac = createHmac("sha256", "").update(`${header}.${payload}`).digest("base64url");
  await expect(authenticate(`Bearer ${header}.${payload}.${mac}`)).rejects.toThrow(
    "unauthenticated",
  );
});

test.each([undefined, "", "Bearer", "Bearer ", "Basic eDp5", "Bearer a b", "Bearer x.y.z"])(
  "what is no bearer token is nobody's (%s)",
  async (header) => {
    await expect(authenticate(header)).rejects.toMatchObject({ code: "unauthenticated" });
  },
);

test("the scheme is the same in letters of either case", async () => {
  for (const scheme of ["Bearer", "bearer", "BEARER", "bEARER "]) {
    expect((await authenticate(`${scheme} ${await token()}`)).grants).toHaveLength(1);
  }
});

/** The address of an issuer's keys, as it answers. */
async function issuerAt(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
}

test("an issuer's keys are fetched from its address, and a new key is found", async () => {
  const { privateKey: fresh } = generateKeyPairSync("ed25519");
  const keys = [{ ...jwkOf(KEY), kid: "old", alg: "EdDSA" }];
  const address = await issuerAt((_, response) => {
    response.setHeader("content-type", "application/json").end(JSON.stringify({ keys }));
  });
  const remote = authenticator([{ ...issuer, key: remoteKeys(address) }], SECRET);
  expect((await remote(`Bearer ${await token()}`)).grants).toHaveLength(1);
  const unknown = remote(`Bearer ${await token({ key: fresh })}`);
  await expect(unknown).rejects.toMatchObject({ code: "unauthenticated" });
});

test.each<[string, RequestListener]>([
  ["answers with an error", (_, response) => void response.writeHead(500).end()],
  ["answers something else", (_, response) => void response.end("<html>")],
  ["answers with no keys", (_, response) => void response.end("{}")],
  ["hangs up", (incoming) => void incoming.destroy()],
  ["does not answer", () => undefined],
])(
  "an issuer that %s makes nobody a stranger: come again, and the log says which",
  async (_, answer) => {
    const failed = vi.fn();
    const key = remoteKeys(await issuerAt(answer), 200);
    const remote = authenticator([{ ...issuer, key }], SECRET, { failed });
    const asked = remote(`Bearer ${await token()}`);
    await expect(asked).rejects.toMatchObject({ code: "issuer-unavailable", status: 503 });
    expect(failed).toHaveBeenCalledExactlyOnceWith(issuer.issuer, expect.any(Error));
  },
);

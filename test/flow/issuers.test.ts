/** Bearer tokens of several issuers, whose keys are fetched over HTTP, change, and go. */
import { createHmac, generateKeyPairSync, type KeyObject } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, exportSPKI, SignJWT } from "jose";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { authenticator, type Issuer, remoteKeys } from "../../src/flow/authenticate.ts";

const SECRET = new Uint8Array(32);
const AUDIENCE = "minutebook";

interface Pair {
  publicKey: KeyObject;
  privateKey: KeyObject;
}

const pairs: Record<string, () => Pair> = {
  EdDSA: () => generateKeyPairSync("ed25519"),
  ES256: () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
  RS256: () => generateKeyPairSync("rsa", { modulusLength: 2_048 }),
};

interface Key extends Pair {
  kid: string;
  alg: string;
}

function keyOf(alg: string, kid: string): Key {
  const pair = pairs[alg]?.();
  if (pair === undefined) throw new Error(`no such algorithm ${alg}`);
  return { ...pair, kid, alg };
}

/** An issuer with a JWKS address of its own. */
class Idp {
  keys: Key[];
  /** Requests for its keys. */
  fetched = 0;
  readonly name: string;
  readonly #server = createServer(async (_, response) => {
    this.fetched += 1;
    const keys = await Promise.all(
      this.keys.map(async ({ alg, kid, publicKey }) => {
        return { ...(await exportJWK(publicKey)), alg, kid, use: "sig" };
      }),
    );
    response.setHeader("content-type", "application/json").end(JSON.stringify({ keys }));
  });

  constructor(name: string, ...keys: Key[]) {
    this.name = name;
    this.keys = keys;
  }

  async issuer(algorithms: string[]): Promise<Issuer> {
    this.#server.listen(0, "127.0.0.1");
    onTestFinished(() => {
      this.#server.close();
      this.#server.closeAllConnections();
    });
    await once(this.#server, "listening");
    const { port } = this.#server.address() as AddressInfo;
    return {
      ...{ issuer: this.name, audience: AUDIENCE, algorithms },
      key: remoteKeys(`http://127.0.0.1:${port}/jwks`),
      grants: [{ claim: "groups", value: "a", role: "auditor", logs: "*", namespaces: "*" }],
    };
  }
}

/** By default good for everything. */
async function token(idp: Idp, key: Key, claims: Record<string, unknown> = {}): Promise<string> {
  const now = Math.floor(Date.now() / 1_000);
  const payload = {
    ...{ iss: idp.name, aud: AUDIENCE, sub: "1", iat: now, exp: now + 300, groups: ["a"] },
    ...claims,
  };
  const kept = Object.fromEntries(
    Object.entries(payload).filter(([, value]) => value !== undefined),
  );
  return await new SignJWT(kept)
    .setProtectedHeader({ alg: key.alg, kid: key.kid })
    .sign(key.privateKey);
}

type Ask = (token: string) => Promise<string>;
const asking = (issuers: readonly Issuer[]): Ask => {
  const authenticate = authenticator(issuers, SECRET);
  return async (text) => (await authenticate(`Bearer ${text}`)).id;
};

const REFUSED = { code: "unauthenticated" };

afterEach(() => void vi.useRealTimers());

test.each(Object.keys(pairs))(
  "a token signed with %s is taken where that is pinned",
  async (alg) => {
    const key = keyOf(alg, "k");
    const idp = new Idp("https://one.example", key);
    const ask = asking([await idp.issuer([alg])]);
    expect(await ask(await token(idp, key))).toMatch(/^p_/);
  },
);

test("an algorithm that is not pinned is refused, though the issuer has a key for it", async () => {
  const [pinned, other] = [keyOf("ES256", "pinned"), keyOf("RS256", "other")];
  const idp = new Idp("https://one.example", pinned, other);
  const ask = asking([await idp.issuer(["ES256"])]);
  await ask(await token(idp, pinned));
  await expect(ask(await token(idp, other))).rejects.toMatchObject(REFUSED);
});

test("neither a MAC under the public key nor no signature at all is one, whatever is pinned", async () => {
  const key = keyOf("RS256", "k");
  const idp = new Idp("https://one.example", key);
  const ask = asking([await idp.issuer(["RS256"])]);
  const [, payload] = (await token(idp, key)).split(".");
  for (const alg of ["HS256", "none", "None"]) {
    const header = Buffer.from(JSON.stringify({ alg, kid: "k" })).toString("base64url");
    const secret = await exportSPKI(key.publicKey);
    const mac = createHmac("sha256", secret).update(`${header}.${payload}`).digest("base64url");
    for (const signature of ["", mac]) {
      await expect(ask(`${header}.${payload}.${signature}`)).rejects.toMatchObject(REFUSED);
    }
  }
});

test("of two issuers each vouches for its own people only, with keys of the same name, and never for the other's", async () => {
  const [first, second] = [keyOf("ES256", "same"), keyOf("ES256", "same")];
  const one = new Idp("https://one.example", first);
  const two = new Idp("https://two.example", second);
  const ask = asking([await one.issuer(["ES256"]), await two.issuer(["ES256"])]);
  const [here, there] = [await ask(await token(one, first)), await ask(await token(two, second))];
  expect(here, "the same subject of another issuer is another person").not.toBe(there);
  await expect(ask(await token(one, second))).rejects.toMatchObject(REFUSED);
  await expect(ask(await token(two, first))).rejects.toMatchObject(REFUSED);
  await expect(ask(await token(new Idp("https://three.example"), first))).rejects.toMatchObject(
    REFUSED,
  );
});

test.each<[string, (now: number) => Record<string, unknown>]>([
  ["for another audience", () => ({ aud: "other" })],
  ["for no audience", () => ({ aud: undefined })],
  ["for nobody", () => ({ sub: undefined })],
  ["without an end", () => ({ exp: undefined })],
  ["without a beginning", () => ({ iat: undefined })],
  ["that ended more than 30 s ago", (now) => ({ exp: now - 31 })],
  ["that begins in more than 30 s", (now) => ({ nbf: now + 60 })],
  ["issued more than 30 s from now", (now) => ({ iat: now + 60 })],
  ["issued more than a day ago", (now) => ({ iat: now - 86_435 })],
])("a token %s is refused", async (_, claims) => {
  const key = keyOf("EdDSA", "k");
  const idp = new Idp("https://one.example", key);
  const ask = asking([await idp.issuer(["EdDSA"])]);
  const bad = await token(idp, key, claims(Math.floor(Date.now() / 1_000)));
  await expect(ask(bad)).rejects.toMatchObject(REFUSED);
});

test("a new key is found when a token first names it, and unknown names do not make us ask without end", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const [old, fresh] = [keyOf("ES256", "old"), keyOf("ES256", "fresh")];
  const idp = new Idp("https://one.example", old);
  const ask = asking([await idp.issuer(["ES256"])]);
  await ask(await token(idp, old));
  expect(idp.fetched).toBe(1);
  idp.keys = [old, fresh];
  vi.advanceTimersByTime(30_000);
  await ask(await token(idp, fresh));
  expect(idp.fetched).toBe(2);
  for (let i = 0; i < 20; i += 1) {
    const made = { ...keyOf("ES256", `made up ${i}`) };
    await expect(ask(await token(idp, made))).rejects.toMatchObject(REFUSED);
  }
  expect(idp.fetched, "within the cooldown it is not asked again").toBe(2);
});

test("a key that its issuer has taken away verifies nothing after ten minutes, and at once when another is fetched", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const [old, fresh] = [keyOf("ES256", "old"), keyOf("ES256", "fresh")];
  const idp = new Idp("https://one.example", old);
  const ask = asking([await idp.issuer(["ES256"])]);
  await ask(await token(idp, old));
  idp.keys = [fresh];
  vi.advanceTimersByTime(600_000);
  await expect(ask(await token(idp, old))).rejects.toMatchObject(REFUSED);
  await ask(await token(idp, fresh));
  idp.keys = [old];
  vi.advanceTimersByTime(30_000);
  await ask(await token(idp, old));
  await expect(ask(await token(idp, fresh))).rejects.toMatchObject(REFUSED);
});

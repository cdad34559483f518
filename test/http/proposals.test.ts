/** Four eyes over HTTP: who approves signs in anew, and what their ID token must be for that. */
import { compactVerify, decodeProtectedHeader, importJWK } from "jose";
import { afterAll, beforeAll, expect, test } from "vitest";
import { decodeBase64, encodeBase64url } from "../../src/core/text.ts";
import { ofKind } from "../flow/door.ts";
import { type Approving, coded, FourEyes } from "./four-eyes.ts";
import { ask } from "./house.ts";
import { CLIENT, IdIssuer } from "./id-issuer.ts";

const ISSUERS = [
  new IdIssuer("https://rsa.example", "RS256"),
  new IdIssuer("https://ec.example", "ES256"),
  new IdIssuer("https://ec384.example", "ES384"),
  new IdIssuer("https://ed.example", "EdDSA"),
] as const;
const [ISSUER, ...OTHERS] = ISSUERS;

let desk: FourEyes;

beforeAll(async () => {
  desk = await FourEyes.open(ISSUER, OTHERS);
});

afterAll(() => desk.house.close());

const sizeOf = async () => (await desk.entries()).length;

test.each(ISSUERS.map((issuer) => [issuer.algorithm, issuer] as const))(
  "what two persons decided stands on the log, and anybody verifies it from the log alone (%s)",
  async (_, issuer) => {
    const token = await issuer.bearer("2", ["approver"]);
    const content = desk.limit();
    const opened = await desk.opened({ content });
    const answer = await desk.approve(opened, { issuer, token });
    expect(answer).toMatchObject({ status: 201, json: { log: desk.log, action: "quota" } });

    const entries = await desk.entries();
    const written = ofKind(entries, "quota").at(-1);
    const approval = ofKind(entries, "approval").at(-1);
    const proposal = ofKind(entries, "proposal").at(-1);
    expect(String(written?.index)).toBe(answer.json["index"]);
    expect(written?.body).toMatchObject({
      approval: String(approval?.index),
      by: proposal?.body.by,
      monthly_minutes: content["monthly_minutes"],
    });
    expect(approval?.body.by).not.toBe(proposal?.body.by);
    const key = entries[Number(approval?.body.issuer_key)];
    if (key?.kind !== "issuer_key") throw new Error("no key");
    const verified = await compactVerify(
      approval?.body.token ?? "",
      await importJWK({ ...key.body.jwk }, issuer.algorithm),
    );
    const claims = JSON.parse(new TextDecoder().decode(verified.payload));
    const shown = await desk.show(opened);
    const leaf = decodeBase64(String(shown.json["leaf"])) ?? new Uint8Array();
    expect(claims).toMatchObject({ iss: issuer.name, sub: "2", nonce: encodeBase64url(leaf) });
    expect(shown.json).toMatchObject({
      state: "approved",
      end: String(approval?.index),
      entry: answer.json["index"],
    });
  },
);

test("a key of an issuer stands on the log once, and one that its issuer forgot verifies for ever", async () => {
  expect((await desk.approve(await desk.opened())).status).toBe(201);
  const before = ofKind(await desk.entries(), "issuer_key").length;
  expect((await desk.approve(await desk.opened())).status).toBe(201);
  ISSUER.rotate();
  await desk.signIn();
  expect((await desk.approve(await desk.opened())).status).toBe(201);
  const entries = await desk.entries();
  expect(ofKind(entries, "issuer_key")).toHaveLength(before + 1);
  for (const { body } of ofKind(entries, "approval")) {
    const key = entries[Number(body.issuer_key)];
    if (key?.kind !== "issuer_key") throw new Error("no key");
    const { alg = "" } = decodeProtectedHeader(body.token);
    await compactVerify(body.token, await importJWK({ ...key.body.jwk }, alg));
  }
});

const FORGER = new IdIssuer("https://rsa.example", "RS256");

test.each<[string, Approving, string]>([
  ["for another proposal", { nonce: "A".repeat(43) }, "invalid-approval"],
  ["of eleven minutes ago", { age: 660 }, "invalid-approval"],
  ["of somebody else than who asks", { subject: "3" }, "invalid-approval"],
  ["for another client", { claims: { aud: "another", azp: "another" } }, "invalid-approval"],
  ["for the service itself", { claims: { aud: "minutebook" } }, "invalid-approval"],
  ["for another client beside", { claims: { aud: [CLIENT, "another"] } }, "invalid-approval"],
  [
    "for another client beside, without a word of who asked",
    { claims: { aud: [CLIENT, "another"], azp: undefined } },
    "invalid-approval",
  ],
  ["that another client asked for", { claims: { azp: "another" } }, "invalid-approval"],
  ["without a sign-in", { claims: { auth_time: undefined } }, "invalid-approval"],
  ["without the role", { claims: { roles: ["finance"] } }, "invalid-approval"],
  ["of a key that is not its issuer's", { issuer: FORGER }, "invalid-approval"],
  [
    "of an issuer that nobody configured",
    { claims: { iss: "https://x.example" } },
    "invalid-approval",
  ],
  ["with an address", { claims: { email: "anna@example.com" } }, "token-says-too-much"],
  ["with a name", { claims: { name: "Anna" } }, "token-says-too-much"],
])("a token %s approves nothing, and the proposal stays open", async (_, made, code) => {
  const opened = await desk.opened();
  const size = await sizeOf();
  expect(coded(await desk.approve(opened, made))).toEqual([422, code]);
  expect([await sizeOf(), await desk.state(opened)]).toEqual([size, "open"]);
});

test("no algorithm is taken but the issuer's: neither none, nor a secret that is its public key", async () => {
  const opened = await desk.opened();
  const good = await ISSUER.idToken("2", { nonce: opened.nonce, now: desk.house.clock.time });
  const [, payload = "", signature = ""] = good.split(".");
  const none = Buffer.from('{"alg":"none"}').toString("base64url");
  const secret = Buffer.from(ISSUER.publicKey.export({ format: "pem", type: "spki" }));
  const hmac = await ISSUER.idToken("2", {
    ...{ nonce: opened.nonce, now: desk.house.clock.time },
    ...{ header: { alg: "HS256" }, key: secret },
  });
  const lax = `${good.slice(0, -1)}${good.endsWith("A") ? "B" : "A"}`;
  for (const id_token of [`${none}.${payload}.`, `${none}.${payload}.${signature}`, hmac, lax]) {
    const json = { id_token };
    const answer = await ask(desk.house, `POST ${desk.path(opened)}/approval`, {
      token: desk.approver,
      json,
    });
    expect(coded(answer)).toEqual([422, "invalid-approval"]);
  }
});

test("a token for a proposal of another log approves nothing here", async () => {
  const other = await desk.newLog("another dual");
  const there = await desk.opened({ log: other });
  const here = await desk.opened();
  expect(coded(await desk.approve({ ...here, nonce: there.nonce }))).toEqual([
    422,
    "invalid-approval",
  ]);
});

test("who proposed does not approve, whatever roles they have", async () => {
  const both = await ISSUER.bearer("4", ["finance", "approver"]);
  const opened = await desk.opened({}, both);
  const answer = await desk.approve(opened, { subject: "4", token: both });
  expect(coded(answer)).toEqual([403, "same-person"]);
  expect(await desk.state(opened)).toBe("open");
});

test("the database refuses an approval by who proposed, whatever the service was made to believe", async () => {
  const { index } = await desk.opened();
  const { writer } = desk.house.database;
  const forged = writer`
    insert into proposal_ends (log, proposal, index, outcome, person)
    select log, index, 999999, 'approved', person
    from proposals
    where log = ${desk.log} and index = ${index}`;
  await expect(forged).rejects.toThrow("a second person is needed");
});

test("an approval is given once, and its token never again", async () => {
  const opened = await desk.opened();
  const id_token = await ISSUER.idToken("2", { nonce: opened.nonce, now: desk.house.clock.time });
  const request = { token: desk.approver, json: { id_token } };
  expect((await ask(desk.house, `POST ${desk.path(opened)}/approval`, request)).status).toBe(201);
  const again = await ask(desk.house, `POST ${desk.path(opened)}/approval`, request);
  expect(coded(again)).toEqual([409, "proposal-ended"]);
  const next = await desk.opened();
  const elsewhere = await ask(desk.house, `POST ${desk.path(next)}/approval`, request);
  expect(coded(elsewhere)).toEqual([422, "invalid-approval"]);
});

test("the token of an approval, which many can read, opens nothing", async () => {
  const opened = await desk.opened();
  const token = await ISSUER.idToken("2", {
    ...{ nonce: opened.nonce, now: Date.now() },
    claims: { aud: ["minutebook", CLIENT] },
  });
  const answer = await ask(desk.house, `GET ${desk.path(opened)}`, { token });
  expect(coded(answer)).toEqual([401, "unauthenticated"]);
});

test("neither a token nor a name out of one is in the service's log, or in an entry that was not written", async () => {
  const opened = await desk.opened();
  const claims = { email: "anna@example.com", name: "Anna Example" };
  expect((await desk.approve(opened, { claims })).status).toBe(422);
  const id_token = await ISSUER.idToken("2", {
    nonce: opened.nonce,
    now: desk.house.clock.time,
    claims,
  });
  const entries = JSON.stringify(await desk.entries(), (_, value) =>
    typeof value === "bigint" ? String(value) : value,
  );
  for (const text of [desk.house.logged.join(""), entries]) {
    for (const secret of [id_token, desk.approver, "anna@example.com", "Anna", encoded("Anna")]) {
      expect(text).not.toContain(secret);
    }
  }
});

/** Inside of a token, wherever it begins. */
function encoded(text: string): string {
  return Buffer.from(`"${text} E`).toString("base64url").slice(2, -2);
}

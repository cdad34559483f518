import { expect, test } from "vitest";
import type { MappedRole } from "../../src/core/control.ts";
import {
  APPROVAL_ALGORITHMS,
  type IdTokenClaims,
  type IdTokenRules,
  isForClient,
  judgeIdToken,
  readIdToken,
} from "../../src/core/id-token.ts";
import { encodeBase64url, encodeUtf8 } from "../../src/core/text.ts";
import { epochMs } from "../../src/core/unit.ts";
import { NOW } from "./history.ts";

const SECONDS = epochMs(NOW) / 1_000;
const ISSUER = "https://id.example";

const CLAIMS: IdTokenClaims = {
  iss: ISSUER,
  sub: "2",
  aud: "minutebook-approvals",
  exp: SECONDS + 300,
  iat: SECONDS - 5,
  auth_time: SECONDS - 20,
  nonce: "n",
};

const APPROVER: MappedRole = {
  claim: "sub",
  issuer: ISSUER,
  namespaces: "*",
  role: "approver",
  value: "2",
};

const RULES: IdTokenRules = {
  at: NOW,
  nonce: "n",
  proposedAt: "2026-11-20T11:59:00.000Z",
  proposer: { issuer: ISSUER, subject: "1" },
  grants: [APPROVER],
};

const judged = (claims: object, rules: Partial<IdTokenRules> = {}) =>
  judgeIdToken({ ...CLAIMS, ...claims }, { ...RULES, ...rules });

test("a fresh token of an approver for just this proposal is an approval", () => {
  expect(judged({})).toBeUndefined();
  const more = { azp: "minutebook-approvals", jti: "j", acr: "2", amr: ["hwk"], sid: "s" };
  expect(judged({ ...more, at_hash: "h", nbf: SECONDS })).toBeUndefined();
});

test.each<[string, object]>([
  ["for another proposal", { nonce: "m" }],
  ["that is over", { exp: SECONDS - 31 }],
  ["of the future", { iat: SECONDS + 31 }],
  ["that holds only later", { nbf: SECONDS + 31 }],
  ["of eleven minutes ago", { iat: SECONDS - 660, auth_time: SECONDS - 660 }],
  ["from before the proposal", { iat: SECONDS - 91, auth_time: SECONDS - 91 }],
  ["of who signed in eleven minutes ago", { auth_time: SECONDS - 660 }],
  ["of who had signed in before the proposal", { auth_time: SECONDS - 91 }],
  ["of who signs in later", { auth_time: SECONDS + 60 }],
  ["of a client in its own name", { azp: "2" }],
  ["whose audience is its subject", { aud: ["other", "2"] }],
  ["of who is no approver", { sub: "3" }],
  ["of another issuer's approver", { iss: "https://other.example" }],
])("a token %s is none", (_, claims) => {
  expect(judged(claims)).toBe("invalid-approval");
});

test("clocks may differ by half a minute", () => {
  for (const claims of [
    { exp: SECONDS - 29 },
    { iat: SECONDS + 30, auth_time: SECONDS + 30 },
    { iat: SECONDS - 90, auth_time: SECONDS - 90 },
    { auth_time: SECONDS - 90 },
  ]) {
    expect(judged(claims)).toBeUndefined();
  }
});

test("a token is for one client: it names no other, and was asked for by no other", () => {
  const good = [{}, { aud: ["minutebook-approvals"] }, { azp: "minutebook-approvals" }];
  for (const claims of good) {
    expect(isForClient({ ...CLAIMS, ...claims }, "minutebook-approvals")).toBe(true);
  }
  const both = ["minutebook-approvals", "other"];
  for (const claims of [
    { aud: both },
    { aud: both, azp: "minutebook-approvals" },
    { aud: "other" },
    { azp: "other" },
  ]) {
    expect(isForClient({ ...CLAIMS, ...claims }, "minutebook-approvals")).toBe(false);
  }
});

test("who proposed does not approve, and is the same only by issuer and subject together", () => {
  expect(judged({}, { proposer: { issuer: ISSUER, subject: "2" } })).toBe("same-person");
  const elsewhere = { issuer: "https://other.example", subject: "2" };
  expect(judged({}, { proposer: elsewhere })).toBeUndefined();
});

test.each<[string, object]>([
  ["an address", { email: "x@example.com" }],
  ["a name", { name: "x" }],
  ["a subject that is an address", { sub: "x@example.com" }],
  ["a claim that only another issuer's mapping names", { groups: ["a"] }],
])("a token with %s says too much", (_, claims) => {
  const other = { ...APPROVER, claim: "groups", issuer: "https://other.example" };
  expect(judged(claims, { grants: [APPROVER, other] })).toBe("token-says-too-much");
});

test("a role may come of any claim that the mapping names, one of several values among them", () => {
  const grants = [{ ...APPROVER, claim: "groups", value: "approvers" }];
  expect(judged({ groups: ["staff", "approvers"] }, { grants })).toBeUndefined();
  expect(judged({ groups: "approvers" }, { grants })).toBeUndefined();
  expect(judged({ groups: ["staff"] }, { grants })).toBe("invalid-approval");
  expect(judged({}, { grants: [{ ...APPROVER, role: "finance" }] })).toBe("invalid-approval");
});

const segment = (value: object | string): string =>
  encodeBase64url(encodeUtf8(typeof value === "string" ? value : JSON.stringify(value)));
const tokenOf = (header: object | string, claims: object | string): string =>
  `${segment(header)}.${segment(claims)}.${segment("signature")}`;

test.each(APPROVAL_ALGORITHMS)("a token by %s can be read", (alg) => {
  const read = readIdToken(tokenOf({ alg, kid: "k", typ: "JWT" }, CLAIMS));
  expect(read).toEqual({ header: { alg, kid: "k", typ: "JWT" }, claims: CLAIMS });
});

test.each<[string, string]>([
  ["nothing", ""],
  ["no signature", tokenOf({ alg: "RS256" }, CLAIMS).replace(/[^.]+$/, "")],
  ["a fourth part", `${tokenOf({ alg: "RS256" }, CLAIMS)}.AAAA`],
  ["padding", `${tokenOf({ alg: "RS256" }, CLAIMS)}=`],
  ["alg none", tokenOf({ alg: "none" }, CLAIMS)],
  ["a shared secret", tokenOf({ alg: "HS256" }, CLAIMS)],
  ["its own key", tokenOf({ alg: "RS256", jwk: {} }, CLAIMS)],
  ["an address of keys", tokenOf({ alg: "RS256", jku: "https://x.example" }, CLAIMS)],
  ["a critical extension", tokenOf({ alg: "RS256", crit: ["b64"], b64: false }, CLAIMS)],
  ["no sign-in", tokenOf({ alg: "RS256" }, { ...CLAIMS, auth_time: undefined })],
  ["no nonce", tokenOf({ alg: "RS256" }, { ...CLAIMS, nonce: undefined })],
  ["a broken second", tokenOf({ alg: "RS256" }, { ...CLAIMS, iat: 1.5 })],
  [
    "a hidden member",
    tokenOf({ alg: "RS256" }, `{"__proto__":"x",${JSON.stringify(CLAIMS).slice(1)}`),
  ],
  ["no JSON", tokenOf({ alg: "RS256" }, "claims")],
  ["too much of it", tokenOf({ alg: "RS256" }, { ...CLAIMS, more: "x".repeat(4_000) })],
])("a text with %s is no token", (_, text) => {
  expect(readIdToken(text)).toBeUndefined();
});

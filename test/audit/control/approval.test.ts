/** What two persons decide is on the log so that nobody can have decided it alone. */
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { thumbprint } from "../../../audit/control/issuer-keys.ts";
import { exitOf, printResult } from "../../../audit/print.ts";
import type { Body } from "../../../src/core/entry.ts";
import { auditFiles, filesOf, said } from "../archive.ts";
import {
  ALGORITHMS,
  APPROVERS,
  contentOf,
  Deciding,
  type Forged,
  ISSUER,
  type SigningKey,
  signingKey,
} from "../deciding.ts";
import { card, enrolment, LONG_AGO, limit, line, SALT, TestLog } from "../log.ts";

const keys = new Map<string, SigningKey>();
let other: SigningKey;
beforeAll(async () => {
  for (const alg of ALGORITHMS) keys.set(alg, await signingKey(alg, `key-${alg}`));
  other = await signingKey("ES256", "other");
});
afterEach(() => vi.unstubAllGlobals());

const CARD = card({ by: "p_first" });

function deciding(alg = "ES256", grants = APPROVERS): Deciding {
  const key = keys.get(alg);
  if (key === undefined) throw new Error(`no key for ${alg}`);
  return new Deciding(key, grants);
}

async function codes({ log }: Deciding): Promise<string[]> {
  return said(await auditFiles(filesOf(log))).codes;
}

test.each(ALGORITHMS)(
  "a card that a second person approved by signing in is proven: %s",
  async (alg) => {
    const two = deciding(alg);
    two.log.write("rate_card", { ...CARD, approval: await two.decide("rate_card", CARD) });
    const result = await auditFiles(filesOf(two.log));
    expect(result.findings.listed).toEqual([]);
    expect(exitOf(result)).toBe(0);
    const thumb = thumbprint(two.key.jwk);
    expect(result.issuerKeys).toMatchObject([{ issuer: ISSUER, thumbprint: thumb, approvals: 1n }]);
    expect(printResult(result)).toContain(`1 approvals by key ${thumb} of ${ISSUER}`);
    expect(result.limits.join()).toContain("--issuer-keys");
    expect(result.decisions).toMatchObject({
      count: 1,
      listed: [
        { action: "rate_card", outcome: "approved", proposer: "p_first", decider: "p_second" },
      ],
    });
  },
);

test("an issuer's key that is not among those known from elsewhere is found", async () => {
  const two = deciding();
  two.log.write("rate_card", { ...CARD, approval: await two.decide("rate_card", CARD) });
  const files = filesOf(two.log);
  const known = new Map([[ISSUER, new Set([thumbprint(two.key.jwk)])]]);
  expect(exitOf(await auditFiles(files, { issuerKeys: known }))).toBe(0);
  const strange = new Map([[ISSUER, new Set([thumbprint(other.jwk)])]]);
  const found = await auditFiles(files, { issuerKeys: strange });
  expect(said(found)).toEqual({ codes: ["issuer-key-unknown"], first: BigInt(two.issuerKey) });
});

const at = (two: Deciding): number => Math.floor(Date.parse(two.log.at) / 1_000);

test("an old sign-in is found, also where it came after the proposal", async () => {
  const two = deciding();
  const proposal = two.propose("rate_card", CARD);
  const auth_time = at(two);
  two.log.at = new Date(Date.parse(two.log.at) + 601_000).toISOString();
  const approval = await two.approve(proposal, { claims: { auth_time } });
  two.log.write("rate_card", { ...CARD, approval });
  expect(await codes(two)).toEqual(["approval-stale"]);
});

/** An approval that no honest service would have let in, by the rule that it breaks. */
const FORGERIES: [string, string, (two: Deciding) => Forged][] = [
  ["approval-signature", "a forged approval", () => ({ signer: other })],
  ["approval-nonce", "an approval of another proposal", () => ({ claims: { nonce: "AAAA" } })],
  ["same-person", "a missing second person", () => ({ claims: { sub: "first" } })],
  ["same-person", "a second person with the first's principal", () => ({ by: "p_first" })],
  ["approver-role", "an approver without the role", () => ({ claims: { sub: "third" } })],
  [
    "approval-token",
    "an approver of another issuer",
    () => ({ claims: { iss: "https://elsewhere.example" } }),
  ],
  [
    "approval-stale",
    "a token that is older than the proposal",
    (two) => ({ claims: { iat: at(two) - 31 } }),
  ],
  ["approval-stale", "a token that is to come", (two) => ({ claims: { iat: at(two) + 31 } })],
  ["approval-stale", "a token that has expired", (two) => ({ claims: { exp: at(two) - 30 } })],
  [
    "approval-stale",
    "a sign-in that is older than the proposal",
    (two) => ({ claims: { auth_time: at(two) - 31 } }),
  ],
  [
    "approval-client",
    "a token for another client beside",
    () => ({ claims: { aud: ["minutebook", "other"] } }),
  ],
  ["approval-client", "a token that another asked for", () => ({ claims: { azp: "other" } })],
  [
    "approver-machine",
    "a client in the place of a person",
    () => ({ claims: { aud: "second", azp: "second" } }),
  ],
  ["approval-claims", "a token with somebody's name", () => ({ claims: { name: "Ada" } })],
  ["approval-token", "a token by no key of the log", () => ({ issuer_key: "0" })],
  ["approval-token", "a token by another key than it names", () => ({ header: { kid: "old" } })],
  ["approval-token", "a token without a sign-in", () => ({ claims: { auth_time: undefined } })],
];

test.each(FORGERIES)("%s: %s is found", async (code, _, forge) => {
  const two = deciding();
  const approval = await two.approve(two.propose("rate_card", CARD), forge(two));
  two.log.write("rate_card", { ...CARD, approval });
  expect(await codes(two)).toEqual([code]);
});

test("a token that names its own key, or is signed by a shared secret, is no ID token", async () => {
  for (const header of [{ jwk: other.jwk }, { alg: "HS256" }, { alg: "none" }]) {
    const two = deciding();
    const proposal = two.propose("rate_card", CARD);
    const [, payload, signature] = (await two.token(proposal)).split(".");
    const forged = { kid: two.key.kid, alg: "ES256", ...header };
    const head = Buffer.from(JSON.stringify(forged)).toString("base64url");
    const token = `${head}.${payload}.${signature}`;
    const body = { by: "p_second", issuer_key: two.issuerKey, proposal, salt: SALT, token };
    const approval = two.log.write("approval", body);
    two.log.write("rate_card", { ...CARD, approval });
    expect(await codes(two)).toEqual(["approval-token"]);
  }
});

test("an approval lets in one entry, and another one that names it is found", async () => {
  const two = deciding();
  const approval = await two.decide("rate_card", CARD);
  two.log.write("rate_card", { ...CARD, approval });
  const again = { ...CARD, approval, effective_from: "2027-01-01T00:00:00.000Z" };
  two.log.write("rate_card", again);
  expect(await codes(two)).toEqual(["approval-used"]);
});

test("content that differs by one character from what was proposed is found", async () => {
  const two = deciding();
  const approval = await two.decide("rate_card", CARD);
  two.log.write("rate_card", { ...CARD, approval, source: "tesT" });
  expect(await codes(two)).toEqual(["approval-content"]);
});

test("an approved entry is its proposer's, and of the kind that was proposed", async () => {
  const one = deciding();
  one.log.write("rate_card", {
    ...CARD,
    by: "p_third",
    approval: await one.decide("rate_card", CARD),
  });
  expect(await codes(one)).toEqual(["approval-content"]);
  const two = deciding();
  const approval = await two.decide("rate_card", CARD);
  two.log.write("visibility", { approval, by: "p_first", public: true, salt: SALT });
  expect(await codes(two)).toEqual(["approval-content"]);
});

test("without effective_from a proposal asks for it at once, and not for another time", async () => {
  const { effective_from: _, ...asked } = CARD;
  for (const [ms, expected] of [
    [0, []],
    [1, []],
    [2, ["approval-content"]],
  ] as const) {
    const two = deciding();
    const effective_from = new Date(Date.parse(two.log.at) + ms).toISOString();
    const approval = await two.decide("rate_card", asked);
    two.log.write("rate_card", { ...CARD, approval, effective_from });
    expect(await codes(two)).toEqual(expected);
  }
});

test("an approval, and what it lets in, stand side by side", async () => {
  const two = deciding();
  const approval = await two.decide("rate_card", CARD);
  two.log.write("quota", { ...limit("1", "400"), approval: "" });
  two.log.write("rate_card", { ...CARD, approval });
  expect(await codes(two)).toEqual(["approval-required", "approval-unused"]);
});

test("what ends a proposal ends it once: nobody approves what was refused, withdrawn or expired", async () => {
  const endings: [Body<"proposal_ended">["outcome"], string, number][] = [
    ["refused", "p_second", 0],
    ["withdrawn", "p_first", 0],
    ["expired", "service", 86_400_001],
  ];
  for (const [outcome, by, later] of endings) {
    const two = deciding();
    const proposal = two.propose("rate_card", CARD);
    two.log.at = new Date(Date.parse(two.log.at) + later).toISOString();
    two.log.write("proposal_ended", { by, outcome, proposal, reason: "no", salt: SALT });
    const clean = await auditFiles(filesOf(two.log));
    expect([outcome, clean.findings.listed]).toEqual([outcome, []]);
    expect(clean.decisions.listed).toMatchObject([{ outcome, decider: by, proposer: "p_first" }]);
    two.log.write("rate_card", { ...CARD, approval: await two.approve(proposal) });
    expect(await codes(two)).toEqual(["approval-proposal"]);
  }
});

test.each<[string, Partial<Body<"proposal_ended">>]>([
  ["proposal-end", { outcome: "withdrawn", by: "p_second" }],
  ["same-person", { outcome: "refused", by: "p_first" }],
  ["proposal-end", { outcome: "expired" }],
  ["proposal-end", { proposal: "0" }],
])("%s: %j is found", async (code, change) => {
  const two = deciding();
  const proposal = two.propose("rate_card", CARD);
  const body = { by: "p_second", outcome: "refused", proposal, reason: "no", salt: SALT } as const;
  two.log.write("proposal_ended", { ...body, ...change });
  expect(await codes(two)).toEqual([code]);
});

test.each<[string, Partial<Body<"proposal">>]>([
  ["proposal-expiry", { expires_at: "2026-11-20T12:00:00.000Z" }],
  ["proposal-expiry", { expires_at: "2026-12-21T12:00:00.001Z" }],
  ["proposal-content", { content: contentOf({ ...CARD, colour: "red" }) }],
  ["proposal-content", { content: "[]" }],
  ["proposal-content", { content: `${contentOf(CARD)} ` }],
  ["proposal-content", { effect: "[]" }],
])("%s: a proposal with %j is found", async (code, change) => {
  const two = deciding();
  two.propose("rate_card", CARD, change);
  expect(await codes(two)).toEqual([code]);
});

test("what systems do by themselves needs no second person, and what a person does in their name does", async () => {
  const two = deciding();
  const body = { approval: "", billing_from: LONG_AGO, by: "p_first", control: "dual" } as const;
  const mode = { ...body, salt: SALT, sources: ["plan"] };
  two.log.write("mode", { ...mode, approval: await two.decide("mode", mode) });
  two.log.write("quota", limit("1", "400"));
  expect(await codes(two)).toEqual([]);
  two.log.write("quota", { ...limit("2", "400"), source: "hand" });
  expect(await codes(two)).toEqual(["approval-required"]);
});

test("an enrolment of the vendor's runners stands behind its approval, one of a customer's own does not", async () => {
  const own = line("own", { runner_type: "group", tracking: "self_managed" });
  const free = deciding();
  free.log.write("enrolment", enrolment({ namespaces: ["5"], runners: [own] }));
  expect(await codes(free)).toEqual([]);
  const renamed = deciding();
  renamed.log.write("enrolment", enrolment({ runners: [line("x", { tracking: "self_managed" })] }));
  expect(await codes(renamed)).toEqual(["approval-required"]);
  const hosted = enrolment({ by: "p_first", runners: [line("x")] });
  const alone = deciding();
  alone.log.write("enrolment", hosted);
  expect(await codes(alone)).toEqual(["approval-required"]);
  const two = deciding();
  await two.decide("enrolment", hosted);
  two.log.write("enrolment", hosted);
  expect(await codes(two)).toEqual([]);
});

test("under single control no entry names an approval", async () => {
  const one = new TestLog();
  one.write("rate_card", card({ approval: "0" }));
  expect(said(await auditFiles(filesOf(one))).codes).toEqual([
    "approval-needless",
    "approval-unknown",
  ]);
});

test("a token that cannot be verified here is never a pass, and no accusation", async () => {
  const two = deciding();
  two.log.write("rate_card", { ...CARD, approval: await two.decide("rate_card", CARD) });
  vi.stubGlobal("crypto", {});
  const result = await auditFiles(filesOf(two.log));
  expect(result.findings.listed).toEqual([]);
  expect(result.open.first?.code).toBe("approval-unverified");
  expect(exitOf(result)).toBe(2);
});

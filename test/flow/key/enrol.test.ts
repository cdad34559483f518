/** Enrolments, claims, rotations, revocations and attestations, as their parties send them. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { thumbprint } from "../../../src/core/ed25519.ts";
import { canonical } from "../../../src/core/json.ts";
import { compact, headerSegment } from "../../../src/core/jws.ts";
import { TYP } from "../../../src/core/report.ts";
import { claim } from "../../../src/flow/key/claim.ts";
import { enrol, tokenDigest } from "../../../src/flow/key/enrol.ts";
import { revoke } from "../../../src/flow/key/revoke.ts";
import { rotate } from "../../../src/flow/key/rotate.ts";
import { attest } from "../../../src/flow/report/attest.ts";
import { jwk, kidOf, NOW, RUNNER, rotation, UUID } from "../../core/history.ts";
import {
  claimOf,
  closeHouse,
  codes,
  type Door,
  type House,
  newAgent,
  newLog,
  ofKind,
  openHouse,
  reported,
  sign,
} from "../door.ts";
import { readBack } from "../replay.ts";

let house: House;
let door: Door;

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
});

afterAll(() => closeHouse(house));

const FUTURE = "2026-12-01T00:00:00.000Z";

async function newToken(log: string, effective_from = RUNNER.effective_from): Promise<string> {
  const runners = [{ ...RUNNER, effective_from }];
  const input = { namespaces: [], runners, claim_seconds: 600 };
  return (await enrol(door, log, "ops", input)).token;
}

test("a token is shown once, and only its digest is on the log", async () => {
  const log = await newLog(door, "token");
  const token = await newToken(log);
  const [enrolment] = ofKind(await readBack(house, log), "enrolment");
  expect(token).toMatch(/^[\w-]{43}$/);
  expect(enrolment?.body.token_sha256).toBe(tokenDigest(token));
  expect(enrolment?.body.claim_until).toBe("2026-11-20T12:10:00.000Z");
  expect(JSON.stringify(enrolment?.body)).not.toContain(token);
});

test("the same claim again, also at another process and after its time, gets the same answer", async () => {
  const log = await newLog(door, "claims");
  const token = await newToken(log);
  const texts = { token, claim: claimOf(1, log, token) };
  const first = await claim(door, texts);
  expect(first).toMatchObject({ log, kid: kidOf(1), runners: [UUID], platform: "dotcom" });
  const other = house.open();
  other.now += 3_600_000;
  expect(first.written).toBe(true);
  expect(await claim(other, texts)).toEqual({ ...first, written: false });
  expect(await claim(door, texts)).toEqual({ ...first, written: false });
  expect(ofKind(await readBack(house, log), "key")).toHaveLength(1);
});

test("of two keys that claim one token at once, one is enrolled", async () => {
  const other = house.open();
  const log = await newLog(door, "race");
  const token = await newToken(log);
  const both = await Promise.allSettled([
    claim(door, { token, claim: claimOf(1, log, token) }),
    claim(other, { token, claim: claimOf(2, log, token) }),
  ]);
  expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  const refused = both.find(({ status }) => status === "rejected");
  expect(refused).toMatchObject({ reason: { code: "token-used" } });
});

test("a claim is refused for what is wrong with it, and writes nothing", async () => {
  const log = await newLog(door, "refused claims");
  const token = await newToken(log);
  const good = claimOf(1, log, token);
  const payload = { issued_at: NOW, log, public_key: jwk(1), token_sha256: tokenDigest(token) };
  // The identity of the group: anybody's signature verifies under it.
  const x = "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
  const weak = { crv: "Ed25519", kty: "OKP", x } as const;
  const stranger = "0".repeat(32);
  const attempts = [
    ["malformed", token, "no JWS"],
    ["malformed", token, sign(1, TYP.report, payload)],
    ["malformed", token, sign(2, TYP.claim, payload)], // another's key
    ["malformed", token, sign(1, TYP.claim, { ...payload, public_key: weak })],
    ["bad-signature", token, `${good.slice(0, -8)}AAAAAAAA`],
    ["unknown-token", "another", good],
    ["unknown-token", "another", claimOf(1, log, "another")],
    ["unknown-token", token, claimOf(1, stranger, token)],
  ] as const;
  for (const [code, token, text] of attempts) {
    await expect(claim(door, { token, claim: text })).rejects.toMatchObject({ code });
  }
  door.now += 601_000;
  const late = claim(door, { token, claim: good });
  await expect(late).rejects.toMatchObject({ code: "token-expired" });
  door.now = Date.parse(NOW);
  expect(ofKind(await readBack(house, log), "key")).toEqual([]);
});

test("a key of small order cannot be enrolled", async () => {
  const log = await newLog(door, "small order");
  const token = await newToken(log);
  const x = "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
  const public_key = { crv: "Ed25519", kty: "OKP", x } as const;
  const kid = thumbprint(Buffer.from(x, "base64url"));
  const payload = { issued_at: NOW, log, public_key, token_sha256: tokenDigest(token) };
  const text = compact(headerSegment(kid, TYP.claim), canonical(payload), () => new Uint8Array(64));
  const request = claim(door, { token, claim: text });
  await expect(request).rejects.toMatchObject({ code: "inadmissible-key" });
});

test("a key is enrolled once in a log", async () => {
  const log = await newLog(door, "key in use");
  await newAgent(door, log, 1);
  const token = await newToken(log, FUTURE);
  const again = claim(door, { token, claim: claimOf(1, log, token) });
  await expect(again).rejects.toMatchObject({ code: "key-in-use" });
});

test("a rotation ends the old key at its final counter, and its successor reports in its place (L34)", async () => {
  const log = await newLog(door, "rotation");
  const token = await newToken(log);
  await claim(door, { token, claim: claimOf(1, log, token) });
  await door.submit(reported(1, log, { counter: "1", job: { id: "1" } }));
  const texts = { rotation: rotation(1, 2, "2", log), claim: claimOf(2, log, token) };
  const rotated = await rotate(door, texts);
  expect(rotated).toMatchObject({ log, kid: kidOf(2), written: true });
  const found = await door.submit(
    reported(1, log, { counter: "2", job: { id: "2" } }),
    reported(1, log, { counter: "3", job: { id: "3" } }),
    reported(2, log, { counter: "1", job: { id: "4" } }),
  );
  expect(codes(found)).toEqual(["accepted", "key-ended", "accepted"]);
  expect(await rotate(house.open(), texts)).toEqual({ ...rotated, written: false });
  const entries = await readBack(house, log);
  expect(ofKind(entries, "key_rotated").map(({ index }) => index)).toEqual([rotated.index]);
  expect(ofKind(entries, "key").map(({ body }) => body.kid)).toEqual([kidOf(1), kidOf(2)]);
});

test("a rotation that was cut off between its two entries is completed by the same request", async () => {
  const log = await newLog(door, "cut off");
  const token = await newToken(log);
  await claim(door, { token, claim: claimOf(31, log, token) });
  const jws = rotation(31, 32, "5", log);
  const { index } = await door.appender.control(log, "key_rotated", () => ({ jws }));
  expect(codes(await door.submit(reported(32, log)))).toEqual(["unknown-key"]);
  const completed = await rotate(door, { rotation: jws, claim: claimOf(32, log, token) });
  expect(completed).toMatchObject({ index, kid: kidOf(32), written: false });
  expect(codes(await door.submit(reported(32, log)))).toEqual(["accepted"]);
});

test("a rotation is refused for what is wrong with it, and ends nothing", async () => {
  const log = await newLog(door, "refused rotations");
  const elsewhere = await newLog(door, "elsewhere");
  const token = await newToken(log);
  await claim(door, { token, claim: claimOf(1, log, token) });
  await newAgent(door, log, 3, [{ effective_from: FUTURE }]);
  const good = rotation(1, 2, "5", log);
  const heir = claimOf(2, log, token);
  const attempts = [
    ["malformed", "no JWS", heir],
    ["malformed", good, "no JWS"],
    ["unknown-key", rotation(88, 2, "5", log), heir],
    ["bad-signature", `${good.slice(0, -8)}AAAAAAAA`, heir],
    ["bad-signature", good, `${heir.slice(0, -8)}AAAAAAAA`],
    ["invalid-request", good, claimOf(4, log, token)],
    ["wrong-log", good, claimOf(2, elsewhere, token)],
    ["wrong-log", rotation(1, 2, "5", elsewhere), claimOf(2, elsewhere, token)],
    ["unknown-token", good, claimOf(2, log, "another")],
    ["key-in-use", rotation(1, 3, "5", log), claimOf(3, log, token)],
  ] as const;
  for (const [code, rotation, claim] of attempts) {
    await expect(rotate(door, { rotation, claim })).rejects.toMatchObject({ code });
  }
  expect(ofKind(await readBack(house, log), "key_rotated")).toEqual([]);
  await rotate(door, { rotation: good, claim: heir });
  const second = { rotation: rotation(1, 5, "5", log), claim: claimOf(5, log, token) };
  await expect(rotate(door, second)).rejects.toMatchObject({ code: "key-has-ended" });
});

test("a key that the log does not know cannot be revoked, and a revoked one not to a later counter", async () => {
  const log = await newLog(door, "revocations");
  const kid = await newAgent(door, log, 1);
  const to = (last_trusted_counter: string, kid: string): Promise<unknown> =>
    revoke(door, { log, kid, by: "ops" }, { last_trusted_counter, reason: "stolen" });
  await expect(to("5", kidOf(77))).rejects.toMatchObject({ code: "not-found" });
  await to("5", kid);
  await expect(to("6", kid)).rejects.toMatchObject({ code: "key-has-ended" });
  await to("4", kid);
  expect(codes(await door.submit(reported(1, log, { counter: "5" })))).toEqual(["key-ended"]);
});

test("an attestation is an entry with its JWS; a key that has ended attests no further than it is trusted", async () => {
  const log = await newLog(door, "attestations");
  const other = await newLog(door, "other attestations");
  const kid = await newAgent(door, log, 21);
  const marks = { clock_offset_ms: "-12", files: [], malformed: "0", rejected: "0", spool: "0" };
  const text = (counter: string, of = log, seed = 21): string =>
    sign(seed, TYP.attestation, { ...marks, counter, issued_at: NOW, log: of });
  const good = text("3");
  const { index } = await attest(door, good);
  const [entry] = ofKind(await readBack(house, log), "attestation");
  expect(entry).toMatchObject({ index, body: { jws: good } });

  const attempts = [
    ["malformed", "no JWS"],
    ["unknown-key", text("1", log, 88)],
    ["bad-signature", `${good.slice(0, -8)}AAAAAAAA`],
    ["wrong-typ", reported(21, log)],
    ["non-canonical", sign(21, TYP.attestation, " {}")],
    ["schema", sign(21, TYP.attestation, { counter: "1", log })],
    ["wrong-log", text("1", other)],
  ] as const;
  for (const [code, jws] of attempts) {
    await expect(attest(door, jws)).rejects.toMatchObject({ code });
  }
  await revoke(door, { log, kid, by: "ops" }, { last_trusted_counter: "3", reason: "stolen" });
  await expect(attest(door, text("4"))).rejects.toMatchObject({ code: "key-has-ended" });
  await attest(door, text("3"));
});

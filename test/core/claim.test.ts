import { expect, test } from "vitest";
import { readAttestation, readClaim, readRotation } from "../../src/core/claim.ts";
import { TYP } from "../../src/core/report.ts";
import { equal } from "../../src/core/text.ts";
import { testKey } from "../signing.ts";
import {
  attestation,
  claim,
  jwk,
  kidOf,
  LOG,
  NOW,
  rotation,
  signed,
  tokenSha256,
} from "./history.ts";

const payload = { issued_at: NOW, log: LOG, public_key: jwk(1), token_sha256: tokenSha256(1) };

test("a claim names its own signer and carries its key", () => {
  const read = readClaim(claim(1));
  expect(read).toMatchObject({ payload, signer: kidOf(1), thumbprint: kidOf(1) });
  expect(read && equal(read.publicKey, testKey(1).publicKey)).toBe(true);
});

test("a rotation is signed by the old key and names the new one", () => {
  const read = readRotation(rotation(1, 2, "17"));
  expect(read).toMatchObject({ signer: kidOf(1), thumbprint: kidOf(2) });
  expect(read?.payload.final_counter).toBe("17");
});

test.each([
  ["by a key that it does not carry", signed(2, TYP.claim, payload)],
  ["of another typ", signed(1, TYP.rotation, payload)],
  ["with an unknown member", signed(1, TYP.claim, { ...payload, extra: "" })],
  [
    "with a key that is no 32 bytes",
    signed(1, TYP.claim, { ...payload, public_key: { ...jwk(1), x: "AA" } }),
  ],
  ["that is no JWS", "claim"],
])("a claim %s is refused", (_, jws) => {
  expect(readClaim(jws)).toBeUndefined();
});

test("an attestation names its signer, its log and the highest counter", () => {
  const read = readAttestation(attestation(1, "17"));
  expect(read).toMatchObject({ signer: kidOf(1), payload: { counter: "17", log: LOG } });
});

test("one statement never passes as another", () => {
  expect(readAttestation(claim(1))).toBeUndefined();
  expect(readClaim(attestation(1, "1"))).toBeUndefined();
  expect(readRotation(claim(1))).toBeUndefined();
  expect(readClaim(rotation(1, 1, "1"))).toBeUndefined();
});

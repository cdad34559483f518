/** Ed25519 and JWS: RFC 8037, Wycheproof, CCTV. */
import { admissibleKey, thumbprint, verdict, verifyByPoints } from "../../../src/core/ed25519.ts";
import { readCompact } from "../../../src/core/jws.ts";
import {
  decodeBase64url,
  decodeHex,
  encodeBase64url,
  encodeUtf8,
  equal,
} from "../../../src/core/text.ts";
import { testKey, verifyByOpenssl, verifyBySodium } from "../../signing.ts";
import { readJson, type Vector, vector } from "../vector.ts";

interface Rfc8037 {
  ed25519: {
    jwk_private: { d: string; x: string };
    thumbprint: string;
    payload_utf8: string;
    jws: string;
  };
}

interface Wycheproof<Group> {
  testGroups: Group[];
}

interface Ed25519Group {
  publicKey: { pk: string };
  tests: { tcId: number; comment: string; msg: string; sig: string; result: string }[];
}

interface JwsGroup {
  comment: string;
  tests: { tcId: number; comment: string; jws: string }[];
}

interface Cctv {
  number: number;
  key: string;
  sig: string;
  msg: string;
  flags: string[] | null;
}

const LIBRARIES = { openssl: verifyByOpenssl, libsodium: verifyBySodium, points: verifyByPoints };

export function* signatureVectors(folder: string): Generator<Vector> {
  yield* rfc8037(readJson<Rfc8037>(folder, "jws/rfc8037_rfc7638.json"));
  const jws = readJson<Wycheproof<JwsGroup>>(folder, "jws/wycheproof_json_web_signature_test.json");
  yield* jws.testGroups.flatMap((group) => group.tests).map(refusedJws);
  const ed25519 = readJson<Wycheproof<Ed25519Group>>(folder, "jws/wycheproof_ed25519_test.json");
  for (const group of ed25519.testGroups) yield* wycheproof(group);
  for (const edge of readJson<Cctv[]>(folder, "jws/cctv_ed25519vectors.json")) yield cctv(edge);
}

/** The RFC's own JWS names the algorithm `EdDSA`, so that only its parts can be taken. */
function* rfc8037({ ed25519 }: Rfc8037): Generator<Vector> {
  const key = testKey(base64url(ed25519.jwk_private.d));
  yield vector("rfc8037 public key", encodeBase64url(key.publicKey) === ed25519.jwk_private.x);
  yield vector("rfc8037 thumbprint", thumbprint(key.publicKey) === ed25519.thumbprint);
  const [header = "", payload = "", signature = ""] = ed25519.jws.split(".");
  const input = encodeUtf8(`${header}.${payload}`);
  const encoded = encodeBase64url(encodeUtf8(ed25519.payload_utf8));
  yield vector("rfc8037 payload", encoded === payload, encoded);
  yield vector("rfc8037 signing", equal(key.sign(input), base64url(signature)));
  yield judged("rfc8037 verifying", key.publicKey, base64url(signature), input, true);
  yield vector("rfc8037 JWS is refused: alg is EdDSA", readCompact(ed25519.jws) === undefined);
}

/** No group of this file is signed with Ed25519: the strict reader takes none of it. */
function refusedJws({ tcId, comment, jws }: JwsGroup["tests"][number]): Vector {
  return vector(`wycheproof jws ${tcId} ${comment}`, readCompact(jws) === undefined, "read");
}

function* wycheproof({ publicKey, tests }: Ed25519Group): Generator<Vector> {
  for (const { tcId, comment, msg, sig, result } of tests) {
    const name = `wycheproof ed25519 ${tcId} ${comment}`;
    yield judged(name, hex(publicKey.pk), hex(sig), hex(msg), result === "valid");
  }
}

/** What has any of the flags (low order, not canonical) is what the verdict was defined against. */
function cctv({ number, key, sig, msg, flags }: Cctv): Vector {
  const honest = (flags ?? []).length === 0;
  return judged(`cctv ed25519 ${number}`, hex(key), hex(sig), encodeUtf8(msg), honest);
}

function judged(
  name: string,
  publicKey: Uint8Array,
  signature: Uint8Array,
  message: Uint8Array,
  expected: boolean,
): Vector {
  const enrolled = admissibleKey(publicKey);
  const verdicts = Object.entries(LIBRARIES).map(([library, verify]) => ({
    library,
    accepted: enrolled && verdict(signature, message, publicKey, verify),
  }));
  const agreed = verdicts.every(({ accepted }) => accepted === expected);
  return vector(name, agreed, `expected ${expected}: ${JSON.stringify(verdicts)}`);
}

function base64url(text: string): Uint8Array {
  return present(decodeBase64url(text));
}

function hex(text: string): Uint8Array {
  return present(decodeHex(text));
}

function present(bytes: Uint8Array | undefined): Uint8Array {
  if (bytes === undefined) throw new Error("a published vector does not decode");
  return bytes;
}

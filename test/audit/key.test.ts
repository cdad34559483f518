import { expect, test } from "vitest";
import { sha256 } from "../../audit/native.ts";
import { TYP } from "../../src/core/report.ts";
import { encodeBase64, encodeBase64url } from "../../src/core/text.ts";
import { auditFiles, filesOf, said } from "./archive.ts";
import {
  type Agent,
  agentOf,
  card,
  enrolment,
  line,
  NOW,
  SALT,
  sign,
  TestLog,
  TOKEN,
} from "./log.ts";

const LATER = "2026-11-20T12:00:00.001Z";

function revoked(kid: string, last_trusted_counter: string) {
  return { by: "operator", instant: NOW, kid, last_trusted_counter, reason: "lost", salt: SALT };
}

/** What no honest service would have written of keys, by the rule that it breaks. */
const CASES: [string, string, (log: TestLog, agent: Agent) => void][] = [
  [
    "key-in-use",
    "a key enrolled twice",
    (log, agent) => {
      const index = log.force("enrolment", enrolment());
      log.force("key", { enrolment: index, jws: log.claim(agent, TOKEN), kid: agent.kid });
    },
  ],
  [
    "token-used",
    "an enrolment claimed by a second key",
    (log) => {
      const second = agentOf(5);
      log.force("key", { enrolment: "2", jws: log.claim(second, TOKEN), kid: second.kid });
    },
  ],
  [
    "token-expired",
    "a claim after its time",
    (log) => {
      const late = agentOf(5);
      const index = log.force("enrolment", enrolment());
      log.at = LATER;
      log.force("key", { enrolment: index, jws: log.claim(late, TOKEN), kid: late.kid });
    },
  ],
  [
    "unknown-enrolment",
    "a claim of another enrolment's token",
    (log) => {
      const key = agentOf(5);
      const index = log.force(
        "enrolment",
        enrolment({ token_sha256: encodeBase64(sha256(Uint8Array.of(3))) }),
      );
      log.force("key", { enrolment: index, jws: log.claim(key, TOKEN), kid: key.kid });
    },
  ],
  [
    "inadmissible-key",
    "a claim by one key for another's kid",
    (log) => {
      const index = log.force("enrolment", enrolment());
      log.force("key", {
        enrolment: index,
        jws: log.claim(agentOf(5), TOKEN),
        kid: agentOf(6).kid,
      });
    },
  ],
  [
    "jws-signature",
    "a claim whose signature does not hold",
    (log) => {
      const { kid, key } = agentOf(5);
      const index = log.force("enrolment", enrolment());
      const public_key = { crv: "Ed25519", kty: "OKP", x: encodeBase64url(key.publicKey) };
      const claim = { issued_at: NOW, log: log.id, public_key, token_sha256: TOKEN };
      log.force("key", { enrolment: index, jws: sign(kid, agentOf(6).key, TYP.claim, claim), kid });
    },
  ],
  [
    "jws-malformed",
    "a key without a claim",
    (log, agent) => {
      log.force("key", { enrolment: "2", jws: log.report(agent).jws, kid: agent.kid });
    },
  ],
  [
    "jws-malformed",
    "a rotation that is none",
    (log, agent) => {
      log.force("key_rotated", { jws: log.report(agent).jws });
    },
  ],
  [
    "jws-key",
    "a rotation of an unknown key",
    (log) => {
      log.force("key_rotated", { jws: log.rotation(agentOf(5), agentOf(6), "1") });
    },
  ],
  [
    "jws-signature",
    "a rotation that the old key did not sign",
    (log, agent) => {
      const forged = { ...agent, key: agentOf(6).key };
      log.force("key_rotated", { jws: log.rotation(forged, agentOf(6), "1") });
    },
  ],
  [
    "jws-log",
    "a rotation for another log",
    (log, agent) => {
      const jws = new TestLog("f".repeat(32)).rotation(agent, agentOf(6), "1");
      log.force("key_rotated", { jws });
    },
  ],
  [
    "key-has-ended",
    "a key rotated twice",
    (log, agent) => {
      log.force("key_rotated", { jws: log.rotation(agent, agentOf(5), "1") });
      log.force("key_rotated", { jws: log.rotation(agent, agentOf(6), "1") });
    },
  ],
  [
    "key-in-use",
    "a rotation to a key of the log",
    (log, agent) => {
      log.force("key_rotated", { jws: log.rotation(agent, agent, "1") });
    },
  ],
  [
    "token-used",
    "an heir that enters after the old key was revoked",
    (log, agent) => {
      const heir = agentOf(5);
      log.force("key_rotated", { jws: log.rotation(agent, heir, "1") });
      log.force("key_revoked", revoked(agent.kid, "0"));
      log.force("key", { enrolment: "2", jws: log.claim(heir, TOKEN), kid: heir.kid });
    },
  ],
  [
    "unknown-key",
    "a revocation of an unknown key",
    (log) => {
      log.force("key_revoked", revoked(agentOf(5).kid, "0"));
    },
  ],
  [
    "key-has-ended",
    "a second revocation to a later counter",
    (log, agent) => {
      log.force("key_revoked", revoked(agent.kid, "4"));
      log.force("key_revoked", revoked(agent.kid, "4"));
    },
  ],
];

test.each(CASES)("%s: %s", async (code, _, write) => {
  const log = new TestLog();
  log.write("rate_card", card());
  const agent = log.enrol(2, [line("runner-a")]);
  write(log, agent);
  expect(said(await auditFiles(filesOf(log)))).toEqual({
    codes: [code],
    first: BigInt(log.size - 1),
  });
});

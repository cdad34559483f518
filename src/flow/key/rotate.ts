/** The old key names its successor and its own last counter; the successor proves itself beside it. */
import type { Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";
import type { Claim, Rotation } from "../../core/report.ts";
import { findRotation } from "../../store/entries.ts";
import type { Appender } from "../log/append.ts";
import type { Receipt } from "../log/commit-entry.ts";
import type { Directory } from "../report/directory.ts";
import { provenClaim, provenRotation, type Statement } from "./statement.ts";

/** The receipt is that of the `key_rotated` entry. */
export interface Rotated extends Receipt {
  log: string;
  /** Of the successor. */
  kid: string;
}

/**
 * Two entries: `key_rotated`, then the successor's `key`. Everything that could refuse the second is
 * asked before the first; if the process dies between them, the same request again completes it.
 *
 * @throws Problem `malformed`, `inadmissible-key`, `bad-signature`, `unknown-key`, `wrong-log`,
 *   `unknown-token`, `key-has-ended`, `key-in-use`, `invalid-request`
 */
export async function rotate(
  { appender, directory }: { appender: Appender; directory: Directory },
  texts: { rotation: string; claim: string },
): Promise<Rotated> {
  const claim = provenClaim(texts.claim);
  const rotation = await provenRotation(texts.rotation, async (kid) =>
    (await directory.find([kid])).get(kid),
  );
  const { log } = rotation.payload;
  if (claim.kid !== rotation.kid) throw new Problem("invalid-request", { member: "claim" });
  if (claim.payload.log !== log) throw new Problem("wrong-log");
  if ((await directory.home(rotation.signer, log)) !== log) throw new Problem("wrong-log");

  const receipt = await appender.control(log, "key_rotated", async (prefix, _, tx) => {
    assertHeir(prefix, rotation, claim);
    return (await findRotation(tx, log, rotation.jws)) ?? { jws: rotation.jws };
  });
  const { kid } = claim;
  await appender.control(log, "key", (prefix) => {
    const enrolment = assertHeir(prefix, rotation, claim);
    const standing = prefix.key(kid);
    if (standing?.enrolment === enrolment) return standing.index;
    return { enrolment: String(enrolment), jws: claim.jws, kid };
  });
  return { ...receipt, log, kid };
}

/** @returns the enrolment that passes on */
function assertHeir(
  prefix: Prefix,
  rotation: Statement<Rotation>,
  claim: Statement<Claim>,
): bigint {
  const old = prefix.key(rotation.signer);
  if (old === undefined) throw new Problem("unknown-key");
  const enrolment = prefix.enrolment(old.enrolment);
  if (enrolment?.token_sha256 !== claim.payload.token_sha256) throw new Problem("unknown-token");
  return old.enrolment;
}

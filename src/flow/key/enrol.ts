/** Names runners for a key that does not exist yet: whoever has the token may bring it, once. */
import { z } from "zod";
import { BODY } from "../../core/entry.ts";
import { encodeBase64, encodeBase64url, encodeUtf8 } from "../../core/text.ts";
import { epochMs, instantText } from "../../core/unit.ts";
import type { Random } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit-entry.ts";
import { sha256 } from "../report/signature.ts";

const CLAIM_SECONDS = 24 * 3_600;
const CLAIM_SECONDS_MAX = 90 * 24 * 3_600;
const TOKEN_BYTES = 32;

export const NewEnrolment = BODY.enrolment.pick({ namespaces: true, runners: true }).extend({
  /** How long the token is good. */
  claim_seconds: z.number().int().min(1).max(CLAIM_SECONDS_MAX).default(CLAIM_SECONDS),
});
export type NewEnrolment = z.infer<typeof NewEnrolment>;

/** `token` is shown once; only its SHA-256 is on the log. */
export interface Enrolled extends Receipt {
  token: string;
  claim_until: string;
}

/**
 * @param by opaque id of the principal who asks
 * @throws Problem `not-found`, `two-trackings`, `namespaces-needed`, `starts-in-the-past`, `too-large`
 */
export async function enrol(
  { appender, random }: { appender: Appender; random: Random },
  log: string,
  by: string,
  { namespaces, runners, claim_seconds }: NewEnrolment,
): Promise<Enrolled> {
  const token = encodeBase64url(random(TOKEN_BYTES));
  const token_sha256 = tokenDigest(token);
  let claim_until = "";
  const receipt = await appender.control(log, "enrolment", (_, at) => {
    claim_until = instantText(epochMs(at) + claim_seconds * 1_000);
    return { by, claim_until, namespaces, runners, salt: salt(random), token_sha256 };
  });
  return { ...receipt, token, claim_until };
}

/** SHA-256 of the token's own text, base64. */
export function tokenDigest(token: string): string {
  return encodeBase64(sha256(encodeUtf8(token)));
}

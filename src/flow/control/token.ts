/** The approver's ID token, verified by its issuer's keys: that this issuer made it, and by which key. */
import { exportJWK, jwtVerify } from "jose";
import { IssuerJwk } from "../../core/control.ts";
import {
  APPROVAL_ALGORITHMS,
  ID_TOKEN_AGE_SECONDS,
  ID_TOKEN_SKEW_SECONDS,
  type IdTokenClaims,
  isForClient,
  readIdToken,
} from "../../core/id-token.ts";
import { Problem } from "../../core/problem.ts";
import type { Issuer } from "../authenticate.ts";

export interface VerifiedIdToken {
  text: string;
  claims: IdTokenClaims;
  /** That verifies it, of public members only. */
  jwk: IssuerJwk;
  /** As the token names it; `""` where it does not. */
  kid: string;
}

/**
 * Signature, issuer, audience and algorithm. What the token must say beside is judged when the approval is
 * written (core/id-token.ts).
 *
 * @param now milliseconds since the epoch
 * @throws Problem `invalid-approval`, and `issuer-unavailable` while nobody can say
 */
export async function verifyIdToken(
  issuers: readonly Issuer[],
  text: string,
  now: number,
): Promise<VerifiedIdToken> {
  const read = readIdToken(text);
  const issuer = issuers.find((each) => each.issuer === read?.claims.iss);
  if (read === undefined || issuer === undefined) throw new Problem("invalid-approval");
  const client = issuer.client ?? issuer.audience;
  if (!isForClient(read.claims, client)) throw new Problem("invalid-approval");
  try {
    const { key } = await jwtVerify(text, issuer.key, {
      issuer: issuer.issuer,
      audience: client,
      algorithms: APPROVAL_ALGORITHMS.filter((name) => issuer.algorithms.includes(name)),
      clockTolerance: ID_TOKEN_SKEW_SECONDS,
      currentDate: new Date(now),
      maxTokenAge: ID_TOKEN_AGE_SECONDS,
    });
    const jwk = IssuerJwk.parse(await exportJWK(key));
    return { text, claims: read.claims, jwk, kid: read.header.kid ?? "" };
  } catch (error) {
    if (error instanceof Problem) throw error;
    // Which check failed is for nobody outside to learn; the cause stays with the error.
    throw Object.assign(new Problem("invalid-approval"), { cause: error });
  }
}

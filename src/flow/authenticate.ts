/**
 * Bearer tokens to principals (RFC 7519, RFC 8725). Issuer, audience and algorithms are pinned per
 * issuer; a token's claims give roles, logs and namespaces only as that issuer's mapping says.
 */
import { createHmac } from "node:crypto";
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from "jose";
import { z } from "zod";
import { Problem } from "../core/problem.ts";
import { type Grant, type Holding, type Principal, Scope } from "./access/grant.ts";
import { type Bearer, holdingsOf, holds, NOTHING_MAPPED, type Standing } from "./access/mapping.ts";

export interface Issuer {
  issuer: string;
  audience: string;
  algorithms: readonly string[];
  key: JWTVerifyGetKey;
  /** Audience of ID tokens by which somebody approves, where it is another: that of an OIDC client. */
  client?: string;
  /** `claims`: the token itself says roles, logs and namespaces; of the local issuer only. */
  grants: readonly Grant[] | "claims";
}

const CLOCK_TOLERANCE_SECONDS = 30;
const MAX_AGE_SECONDS = 24 * 3600;

const LocalClaims = z.object({ grants: z.array(Scope).min(1) });

export type Authenticate = (authorization: string | undefined) => Promise<Principal>;

/** RFC 6750 §2.1; the scheme's letters may be of either case (RFC 9110 §11.1). */
const BEARER = /^Bearer +([A-Z0-9_.-]{1,8192})$/i;

/**
 * @param principalKey secret under which issuer and subject become the principal's id
 * @param options.failed told why an issuer's keys could not be fetched
 * @param options.standing what the logs themselves say, and who is barred
 * @returns a function that throws Problem `unauthenticated` for whatever does not verify, and for who is barred;
 *   `issuer-unavailable` while nobody can say whether it does; `busy` before anything is known of the logs
 */
export function authenticator(
  issuers: readonly Issuer[],
  principalKey: Uint8Array,
  options: {
    failed?: (issuer: string, error: unknown) => void;
    standing?: () => Standing | Promise<Standing>;
  } = {},
): Authenticate {
  const { failed, standing = () => NOTHING_MAPPED } = options;
  const byName = new Map(issuers.map((issuer) => [issuer.issuer, issuer]));
  const verified = new VerifiedTokens();
  const read = async (token: string): Promise<Verified> => {
    const issuer = byName.get(claimedIssuer(token) ?? "");
    if (issuer === undefined) throw new Problem("unauthenticated");
    const from = Date.now();
    const payload = await verify(token, issuer).catch((error: Problem) => {
      if (error.code === "issuer-unavailable") failed?.(issuer.issuer, error.cause);
      throw error;
    });
    const configured =
      issuer.grants === "claims" ? localGrants(payload) : mapped(payload, issuer.grants);
    const subject = payload.sub ?? "";
    const id = principalId(principalKey, issuer.issuer, subject);
    const isLocal = issuer.grants === "claims";
    const bearer = { id, issuer: issuer.issuer, subject, configured, claims: payload, isLocal };
    return { bearer, from, until: Math.min(from + KNOWN_MS, endOf(payload)) };
  };
  return async (authorization) => {
    const token = BEARER.exec(authorization ?? "")?.[1];
    if (token === undefined) throw new Problem("unauthenticated");
    const known = verified.find(token) ?? verified.keep(token, await read(token));
    return principalOf(known, await standing());
  };
}

/** So long a token is taken at its word after its issuer has withdrawn the key that signed it. */
const KNOWN_MS = 5_000;
const KNOWN_MAX = 1_000;

/** It holds in [from, until), epoch milliseconds. */
interface Verified {
  readonly bearer: Bearer;
  readonly from: number;
  readonly until: number;
  /** Worked out once for as long as nothing changes on any log. */
  worked?: { standing: Standing; principal: Principal };
}

/** @throws Problem `unauthenticated` for who is barred everywhere: their token is as good as none */
function principalOf(verified: Verified, standing: Standing): Principal {
  const { worked, bearer } = verified;
  if (worked?.standing === standing) return worked.principal;
  const grants = holdingsOf(bearer, standing);
  if (grants === undefined) throw new Problem("unauthenticated");
  const { id, issuer, subject } = bearer;
  const principal = { id, issuer, subject, grants };
  verified.worked = { standing, principal };
  return principal;
}

/** Of the last seconds: to verify a token takes longer than to decide about many jobs. */
class VerifiedTokens {
  /** By the whole token; the first one verified first. */
  readonly #known = new Map<string, Verified>();

  find(token: string): Verified | undefined {
    const known = this.#known.get(token);
    const now = Date.now();
    // In both directions: a clock that stepped back must not keep a token for as long.
    return known !== undefined && known.from <= now && now < known.until ? known : undefined;
  }

  keep(token: string, verified: Verified): Verified {
    this.#known.delete(token);
    this.#known.set(token, verified);
    for (const [other, { until }] of this.#known) {
      if (verified.from < until && this.#known.size <= KNOWN_MAX) break;
      this.#known.delete(other);
    }
    return verified;
  }
}

/** Epoch milliseconds: without the tolerance that `verify` has, for which it is asked again. */
function endOf({ exp = 0, iat = 0 }: JWTPayload): number {
  return Math.min(exp, iat + MAX_AGE_SECONDS) * 1_000;
}

async function verify(token: string, issuer: Issuer): Promise<JWTPayload> {
  try {
    const { payload } = await jwtVerify(token, issuer.key, {
      issuer: issuer.issuer,
      audience: issuer.audience,
      algorithms: [...issuer.algorithms],
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      maxTokenAge: MAX_AGE_SECONDS,
      requiredClaims: ["sub", "exp", "iat"],
    });
    // That of an approval stands on its log for many to read: it opens nothing (OpenID Connect Core §2).
    if ("nonce" in payload) throw new Error("authenticate: an ID token");
    return payload;
  } catch (error) {
    if (error instanceof Problem) throw error;
    // Which check failed is for nobody outside to learn; the cause stays with the error.
    throw Object.assign(new Problem("unauthenticated"), { cause: error });
  }
}

/** Read unverified, only to choose whose keys verify. */
function claimedIssuer(token: string): string | undefined {
  try {
    const payload = token.split(".")[1] ?? "";
    const { iss } = JSON.parse(Buffer.from(payload, "base64url").toString("utf8"));
    return typeof iss === "string" ? iss : undefined;
  } catch {
    return undefined;
  }
}

function mapped(payload: JWTPayload, grants: readonly Grant[]): Holding[] {
  return grants
    .filter(({ claim, value }) => holds(payload, claim, value))
    .map(({ role, logs, namespaces }) => ({ role, logs, namespaces }));
}

function localGrants(payload: JWTPayload): readonly Holding[] {
  const claims = LocalClaims.safeParse(payload);
  if (!claims.success) throw new Problem("unauthenticated");
  return claims.data.grants;
}

function principalId(key: Uint8Array, issuer: string, subject: string): string {
  const mac = createHmac("sha256", key)
    .update(JSON.stringify([issuer, subject]))
    .digest();
  return `p_${mac.subarray(0, 16).toString("base64url")}`;
}

/** What jose says of a token when it has the issuer's keys. */
const NOT_AMONG_THEM = [
  errors.JWKSNoMatchingKey,
  errors.JWKSMultipleMatchingKeys,
  errors.JOSENotSupported,
];

/** Between two fetches because of names that nobody knows: anybody can make them up. */
const KEYS_COOLDOWN_MS = 30_000;
/** After so long a key that its issuer took away verifies nothing, also if no other is ever asked for. */
const KEYS_AGE_MS_MAX = 600_000;

/**
 * Keys of an issuer fetched from its JWKS address, cached, and fetched anew for an unknown kid.
 * @returns a function that throws Problem `issuer-unavailable` when that does not give any
 */
export function remoteKeys(address: string, timeoutMs = 5_000): JWTVerifyGetKey {
  const limits = {
    timeoutDuration: timeoutMs,
    cooldownDuration: KEYS_COOLDOWN_MS,
    cacheMaxAge: KEYS_AGE_MS_MAX,
  };
  const find = createRemoteJWKSet(new URL(address), limits);
  return async (header, token) => {
    try {
      return await find(header, token);
    } catch (error) {
      if (NOT_AMONG_THEM.some((kind) => error instanceof kind)) throw error;
      throw Object.assign(new Problem("issuer-unavailable"), { cause: error });
    }
  };
}

/** Keys that do not change while the process runs. @throws Error when they are no JWKS */
export function fixedKeys(keys: { keys: readonly object[] }): JWTVerifyGetKey {
  return createLocalJWKSet(keys as JSONWebKeySet);
}

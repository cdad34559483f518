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
import { ROLES } from "../core/control.ts";
import { Problem } from "../core/problem.ts";
import { IntegerText, LogId } from "../core/unit.ts";

export const Role = z.enum(ROLES);
export type Role = z.infer<typeof Role>;

const Logs = z.union([z.literal("*"), z.array(LogId)]);
const Namespaces = z.union([z.literal("*"), z.array(IntegerText)]);

/** Nothing of it may be left out: what is silent must not be everything. */
const Scope = z.strictObject({ role: Role, logs: Logs, namespaces: Namespaces });

/** Any other role sees all of its logs, so that a bound on it would only look like one. */
export function canBeBound(role: Role): boolean {
  return role === "viewer";
}

const isKept = ({ role, namespaces }: z.infer<typeof Scope>): boolean =>
  namespaces === "*" || canBeBound(role);

/** A claim's value gives a role on some logs, and for viewers on some namespaces of them. */
export const Grant = Scope.extend({ claim: z.string().min(1), value: z.string() }).refine(isKept, {
  path: ["namespaces"],
  error: "only a viewer can be bound to namespaces",
});
export type Grant = z.infer<typeof Grant>;

export interface Issuer {
  issuer: string;
  audience: string;
  algorithms: readonly string[];
  key: JWTVerifyGetKey;
  /** `claims`: the token itself says roles, logs and namespaces; of the local issuer only. */
  grants: readonly Grant[] | "claims";
}

/** Who asks. `id` is opaque: no name of a person reaches a signed or hashed byte. */
export interface Principal {
  id: string;
  grants: readonly {
    role: Role;
    logs: "*" | readonly string[];
    namespaces: "*" | readonly string[];
  }[];
}

const CLOCK_TOLERANCE_SECONDS = 30;
const MAX_AGE_SECONDS = 24 * 3600;

const LocalClaims = z.object({ grants: z.array(Scope.refine(isKept)).min(1) });

export type Authenticate = (authorization: string | undefined) => Promise<Principal>;

/** RFC 6750 §2.1; the scheme's letters may be of either case (RFC 9110 §11.1). */
const BEARER = /^Bearer +([A-Z0-9_.-]{1,8192})$/i;

/**
 * @param principalKey secret under which issuer and subject become the principal's id
 * @param failed told why an issuer's keys could not be fetched
 * @returns a function that throws Problem `unauthenticated` for whatever does not verify, and
 *   `issuer-unavailable` while nobody can say whether it does
 */
export function authenticator(
  issuers: readonly Issuer[],
  principalKey: Uint8Array,
  failed?: (issuer: string, error: unknown) => void,
): Authenticate {
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
    const grants =
      issuer.grants === "claims" ? localGrants(payload) : mapped(payload, issuer.grants);
    const id = principalId(principalKey, issuer.issuer, payload.sub ?? "");
    return { principal: { id, grants }, from, until: Math.min(from + KNOWN_MS, endOf(payload)) };
  };
  return async (authorization) => {
    const token = BEARER.exec(authorization ?? "")?.[1];
    if (token === undefined) throw new Problem("unauthenticated");
    return verified.find(token) ?? verified.keep(token, await read(token));
  };
}

/** So long a token is taken at its word after its issuer has withdrawn the key that signed it. */
const KNOWN_MS = 5_000;
const KNOWN_MAX = 1_000;

/** It holds in [from, until), epoch milliseconds. */
interface Verified {
  readonly principal: Principal;
  readonly from: number;
  readonly until: number;
}

/** Of the last seconds: to verify a token takes longer than to decide about many jobs. */
class VerifiedTokens {
  /** By the whole token; the first one verified first. */
  readonly #known = new Map<string, Verified>();

  find(token: string): Principal | undefined {
    const known = this.#known.get(token);
    const now = Date.now();
    // In both directions: a clock that stepped back must not keep a token for as long.
    return known !== undefined && known.from <= now && now < known.until
      ? known.principal
      : undefined;
  }

  keep(token: string, verified: Verified): Principal {
    this.#known.delete(token);
    this.#known.set(token, verified);
    for (const [other, { until }] of this.#known) {
      if (verified.from < until && this.#known.size <= KNOWN_MAX) break;
      this.#known.delete(other);
    }
    return verified.principal;
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

function mapped(payload: JWTPayload, grants: readonly Grant[]): Principal["grants"] {
  return grants.filter(({ claim, value }) => {
    const held = payload[claim];
    return Array.isArray(held) ? held.includes(value) : held === value;
  });
}

function localGrants(payload: JWTPayload): Principal["grants"] {
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

/**
 * Keys of an issuer fetched from its JWKS address, cached, and fetched anew for an unknown kid.
 * @returns a function that throws Problem `issuer-unavailable` when that does not give any
 */
export function remoteKeys(address: string, timeoutMs = 5_000): JWTVerifyGetKey {
  const limits = { timeoutDuration: timeoutMs, cooldownDuration: 30_000 };
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

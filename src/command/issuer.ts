/**
 * The issuer of development: tokens signed by a key in a file beside the service, which say
 * themselves what they grant. A service in production does not know it.
 */
import { createPublicKey, type KeyObject } from "node:crypto";
import { SignJWT } from "jose";
import { LOCAL_ISSUER } from "../flow/access/configured.ts";
import type { Role, Scope } from "../flow/access/grant.ts";
import type { Issuer } from "../flow/authenticate.ts";

const LOCAL_AUDIENCE = "minutebook";
/** The fully specified name (RFC 9864): no other algorithm of an Ed25519 key passes for it. */
const ALGORITHM = "Ed25519";
const SECONDS_DEFAULT = 8 * 3_600;

export interface LocalTokenOptions {
  /** Whose id it becomes; four eyes need two of them. */
  subject?: string;
  /** How long it is good; the service takes none that is older than a day. */
  seconds?: number;
  /** Milliseconds since the epoch. */
  now?: number;
}

/** A bearer token, for whoever holds the key. */
export async function localToken(
  key: KeyObject,
  grants: readonly Scope[],
  { subject = "local", seconds = SECONDS_DEFAULT, now = Date.now() }: LocalTokenOptions = {},
): Promise<string> {
  const issuedAt = Math.floor(now / 1_000);
  const roles = [...new Set(grants.map(({ role }) => role))];
  return await new SignJWT({ grants, roles })
    .setProtectedHeader({ alg: ALGORITHM })
    .setIssuer(LOCAL_ISSUER)
    .setAudience(LOCAL_AUDIENCE)
    .setSubject(subject)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + seconds)
    .sign(key);
}

export interface LocalIdTokenOptions {
  nonce: string;
  subject: string;
  roles: readonly Role[];
  /** Milliseconds since the epoch. */
  now?: number;
}

const ID_TOKEN_SECONDS = 300;

/** As of somebody who signed in just now. It is no bearer token: it grants nothing. */
export async function localIdToken(
  key: KeyObject,
  { nonce, subject, roles, now = Date.now() }: LocalIdTokenOptions,
): Promise<string> {
  const issuedAt = Math.floor(now / 1_000);
  return await new SignJWT({ nonce, roles: [...roles], auth_time: issuedAt })
    .setProtectedHeader({ alg: ALGORITHM })
    .setIssuer(LOCAL_ISSUER)
    .setAudience(LOCAL_AUDIENCE)
    .setSubject(subject)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + ID_TOKEN_SECONDS)
    .sign(key);
}

/** The same issuer as the service verifies it. */
export function localIssuer(key: KeyObject): Issuer {
  const publicKey = createPublicKey(key);
  return {
    issuer: LOCAL_ISSUER,
    audience: LOCAL_AUDIENCE,
    algorithms: [ALGORITHM],
    key: async () => publicKey,
    grants: "claims",
  };
}

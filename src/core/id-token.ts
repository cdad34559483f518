/**
 * The approver's ID token (OpenID Connect Core §§2, 3.1.3.7): what it must say to be an approval, and all
 * that it may say, since it stays on the log. Pure; that its signature verifies is for the caller to find.
 */
import { z } from "zod";
import { isSamePerson, type Person } from "./approval.ts";
import { JWS_CHARS_MAX } from "./body.ts";
import type { MappedRole } from "./control.ts";
import { decodeBase64url, decodeUtf8 } from "./text.ts";
import { epochMs, NonEmptyText } from "./unit.ts";

/** Fully specified or not (RFC 9864), what approvals are signed with. Never a shared secret, never `none`. */
export const APPROVAL_ALGORITHMS = ["RS256", "ES256", "ES384", "EdDSA", "Ed25519"] as const;

/** All that an approver's client asks for. */
export const APPROVAL_SCOPE = "openid";

/** Issuers' clocks, and ours. */
export const ID_TOKEN_SKEW_SECONDS = 30;
/** Of the token, and of the sign-in that it tells of. */
export const ID_TOKEN_AGE_SECONDS = 600;

const Seconds = z.int().min(0).max(253_402_300_799); // the last second of the year 9999
const Texts = z.union([NonEmptyText, z.array(NonEmptyText).min(1).max(32)]);

/** Nothing that could be a person's name (§5.1); a mapping may name others, and new ones no such either. */
const CLAIMS = {
  iss: NonEmptyText,
  sub: NonEmptyText,
  aud: Texts,
  azp: NonEmptyText.exactOptional(),
  exp: Seconds,
  iat: Seconds,
  nbf: Seconds.exactOptional(),
  auth_time: Seconds,
  nonce: NonEmptyText,
  jti: NonEmptyText.exactOptional(),
  acr: NonEmptyText.exactOptional(),
  amr: z.array(NonEmptyText).max(32).exactOptional(),
  at_hash: NonEmptyText.exactOptional(),
  sid: NonEmptyText.exactOptional(),
} as const;

const Claims = z.looseObject(CLAIMS);
export type IdTokenClaims = z.infer<typeof Claims>;

/** No key or certificate in it: which key verifies is not for the token to say. */
const Header = z.strictObject({
  alg: z.enum(APPROVAL_ALGORITHMS),
  kid: NonEmptyText.exactOptional(),
  typ: NonEmptyText.exactOptional(),
  x5t: NonEmptyText.exactOptional(),
  "x5t#S256": NonEmptyText.exactOptional(),
});

export interface IdToken {
  header: z.infer<typeof Header>;
  claims: IdTokenClaims;
}

/** Undefined unless it is a compact JWS in exactly one spelling, at most 4,096 bytes, of such a shape. */
export function readIdToken(text: string): IdToken | undefined {
  if (text.length > JWS_CHARS_MAX) return undefined;
  const [head = "", body = "", signature = "", ...more] = text.split(".");
  if (more.length > 0 || !decodeBase64url(signature)?.length) return undefined;
  const header = Header.safeParse(jsonOf(head));
  const claims = Claims.safeParse(jsonOf(body));
  return header.success && claims.success
    ? { header: header.data, claims: claims.data }
    : undefined;
}

export interface IdTokenRules {
  /** When the approval is written. */
  at: string;
  /** What is approved: its leaf hash, when it was written and by whom. */
  nonce: string;
  proposedAt: string;
  proposer: Person;
  /** Of the role mapping that holds. */
  grants: readonly MappedRole[];
}

/** The code of the first rule that the token breaks. */
export function judgeIdToken(
  claims: IdTokenClaims,
  { at, nonce, proposedAt, proposer, grants }: IdTokenRules,
): "same-person" | "token-says-too-much" | "invalid-approval" | undefined {
  if (isAddress(claims.sub) || !saysNoMore(claims, grants)) return "token-says-too-much";
  if (claims.nonce !== nonce || isMachine(claims)) return "invalid-approval";
  if (!isFresh(claims, epochMs(at), epochMs(proposedAt))) return "invalid-approval";
  if (isSamePerson(personOf(claims), proposer)) return "same-person";
  return holdsRole(claims, "approver", grants) ? undefined : "invalid-approval";
}

/** A subject is opaque; one like this is somebody's name, or that of a machine (`client@clients`). */
export function isAddress(subject: string): boolean {
  return subject.includes("@");
}

/** The profile of whoever signs in (OpenID Connect Core §§5.1, 5.4). */
const PROFILE_CLAIMS: readonly string[] = [
  "name",
  "given_name",
  "family_name",
  "middle_name",
  "nickname",
  "preferred_username",
  "profile",
  "picture",
  "website",
  "email",
  "email_verified",
  "gender",
  "birthdate",
  "zoneinfo",
  "locale",
  "phone_number",
  "phone_number_verified",
  "address",
];

/**
 * Whether a role goes by what could be somebody's name: it would stand in the mapping, and in each approver's
 * token. Asked of what is new: what stands on a log stays what it is.
 */
export function goesByName({ claim, value }: Pick<MappedRole, "claim" | "value">): boolean {
  return PROFILE_CLAIMS.includes(claim) || isAddress(value);
}

export function personOf({ iss, sub }: Pick<IdTokenClaims, "iss" | "sub">): Person {
  return { issuer: iss, subject: sub };
}

/** Whether the mapping gives the role to whoever shows these claims. */
export function holdsRole(
  claims: IdTokenClaims,
  role: MappedRole["role"],
  grants: readonly MappedRole[],
): boolean {
  return grants.some((grant) => {
    if (grant.role !== role || grant.issuer !== claims.iss) return false;
    const held: unknown = claims[grant.claim];
    return Array.isArray(held) ? held.includes(grant.value) : held === grant.value;
  });
}

/**
 * Whether it was made for this client and for nobody beside (OpenID Connect Core §3.1.3.7): an audience that is not
 * known could show it as its own, and the authorized party, where it is said, is the client that asked.
 */
export function isForClient({ aud, azp }: IdTokenClaims, client: string): boolean {
  const parties = [aud, azp ?? client].flat();
  return parties.every((party) => party === client);
}

function saysNoMore(claims: IdTokenClaims, grants: readonly MappedRole[]): boolean {
  const mapped = grants.filter(({ issuer }) => issuer === claims.iss).map(({ claim }) => claim);
  return Object.keys(claims).every((name) => Object.hasOwn(CLAIMS, name) || mapped.includes(name));
}

/** A client that asks in its own name (RFC 6749 §4.4) is its own subject. */
function isMachine({ aud, azp, sub }: IdTokenClaims): boolean {
  return sub === azp || [aud].flat().includes(sub);
}

/**
 * Issued just now, of somebody who signed in just now, both after the proposal: an issuer that is not to ask anew
 * (`prompt=none`) puts a new nonce beside an old sign-in, which was for something else.
 */
function isFresh(
  { auth_time, exp, iat, nbf = 0 }: IdTokenClaims,
  at: number,
  proposedAt: number,
): boolean {
  const now = at / 1_000;
  const latest = now + ID_TOKEN_SKEW_SECONDS;
  const oldest = now - ID_TOKEN_AGE_SECONDS;
  const holds = iat <= latest && nbf <= latest && now < exp + ID_TOKEN_SKEW_SECONDS;
  const follows = Math.min(iat, auth_time) + ID_TOKEN_SKEW_SECONDS >= proposedAt / 1_000;
  const signedIn = auth_time >= oldest && auth_time <= iat + ID_TOKEN_SKEW_SECONDS;
  return holds && follows && signedIn && iat >= oldest;
}

function jsonOf(segment: string): unknown {
  const bytes = decodeBase64url(segment);
  try {
    const value: unknown = JSON.parse((bytes && decodeUtf8(bytes)) ?? "");
    // Some objects take this name for an order, and then do not show it.
    return Object.hasOwn(Object(value), "__proto__") ? undefined : value;
  } catch {
    return undefined; // no JSON: no shape takes it
  }
}

/**
 * The approver's ID token (OpenID Connect Core §2), read a second time: plain questions to parsed JSON,
 * without a look at the service's own reading. That it is signed, `signature.ts` asks.
 */
import type { IssuerJwk, MappedRole } from "../../src/core/control.ts";
import { decodeBase64url, decodeUtf8 } from "../../src/core/text.ts";
import type { FindingCode } from "../finding.ts";

export interface IdToken {
  alg: string;
  /** `""` where the header names none. */
  kid: string;
  claims: Claims;
}

interface Claims {
  readonly iss: string;
  readonly sub: string;
  readonly aud: string | readonly string[];
  /** Seconds since the epoch. */
  readonly exp: number;
  readonly iat: number;
  readonly nbf?: number;
  readonly auth_time: number;
  readonly nonce: string;
  readonly [name: string]: unknown;
}

/** What a header may have. No key and no certificate: which key verifies is not for the token to say. */
const HEADER = ["alg", "kid", "typ", "x5t", "x5t#S256"];

/** Claims that say nothing of a person but that it is one; the first line must be there. */
const REQUIRED = ["iss", "sub", "aud", "exp", "iat", "auth_time", "nonce"];
const ALLOWED = [...REQUIRED, "azp", "nbf", "jti", "acr", "amr", "at_hash", "sid"];
const SECONDS = ["exp", "iat", "auth_time", "nbf"];
const TEXTS = ["iss", "sub", "nonce", "azp", "jti", "acr", "at_hash", "sid"];
const LISTS = ["aud", "amr"];

/** Of clocks, and of a token and the sign-in that it tells of, in milliseconds. */
const SKEW_MS = 30_000;
const AGE_MS = 600_000;

/** Undefined unless it is a compact JWS in the one spelling of its bytes, with all that an ID token must say. */
export function readIdToken(text: string): IdToken | undefined {
  const segments = text.split(".");
  const [header, claims] = segments.slice(0, 2).map(objectIn);
  const signature = segments[2] === undefined ? undefined : decodeBase64url(segments[2]);
  if (segments.length !== 3 || !header || !claims || !signature?.length) return undefined;
  const { alg, kid = "" } = header;
  if (typeof alg !== "string" || typeof kid !== "string") return undefined;
  if (Object.keys(header).some((name) => !HEADER.includes(name))) return undefined;
  return isComplete(claims) ? { alg, kid, claims } : undefined;
}

/** The one algorithm of a key (RFC 7518 §3.1, RFC 8037 §3.1); Ed25519 has an old name and a new one. */
export function fits(alg: string, jwk: IssuerJwk): boolean {
  switch (jwk.kty) {
    case "RSA":
      return alg === "RS256";
    case "EC":
      return alg === (jwk.crv === "P-256" ? "ES256" : "ES384");
    case "OKP":
      return alg === "EdDSA" || alg === "Ed25519";
  }
}

export interface Approving {
  /** Of the approval's entry. */
  at: string;
  /** base64url of the proposal's leaf hash, and when and by whom it was written. */
  nonce: string;
  proposed: string;
  proposer: { issuer: string; subject: string };
  grants: readonly MappedRole[];
}

/** Every rule that the token breaks, with what it says instead. */
export function* faultsOf(
  claims: Claims,
  { at, grants, nonce, proposed, proposer }: Approving,
): Generator<[FindingCode, string]> {
  const ofIssuer = grants.filter(({ issuer }) => issuer === claims.iss);
  const named = new Set([...ALLOWED, ...ofIssuer.map(({ claim }) => claim)]);
  const extra = Object.keys(claims).find((name) => !named.has(name));
  if (extra !== undefined) yield ["approval-claims", `the token says ${extra}`];
  if (claims.nonce !== nonce) yield ["approval-nonce", `nonce ${claims.nonce}, not ${nonce}`];
  const stale = ageFault(claims, Date.parse(at), Date.parse(proposed));
  if (stale !== undefined) yield ["approval-stale", stale];
  const strange = strangerIn(claims);
  if (strange !== undefined) yield ["approval-client", strange];
  if (claims.iss === proposer.issuer && claims.sub === proposer.subject) {
    yield ["same-person", "the proposer has approved"];
  }
  if (isMachine(claims)) yield ["approver-machine", `subject ${claims.sub} is a client's`];
  const approves = ofIssuer.some(
    ({ claim, role, value }) => role === "approver" && holds(claims[claim], value),
  );
  if (!approves)
    yield ["approver-role", "no grant of the role mapping before makes it an approver"];
}

/** Which client it was made for no log says; that it was made for one, and by its asking, the token does. */
function strangerIn({ aud, azp }: Claims): string | undefined {
  const audience = [aud].flat();
  const [client] = audience;
  if (client === undefined) return "the token is for nobody";
  const other = [...audience, azp ?? client].find((party) => party !== client);
  return other === undefined ? undefined : `the token is for ${client}, and names ${String(other)}`;
}

/** Issued and signed in for just now, and not before there was a proposal to approve. */
function ageFault(claims: Claims, at: number, proposed: number): string | undefined {
  const [exp, iat, signedIn, nbf] = [claims.exp, claims.iat, claims.auth_time, claims.nbf ?? 0].map(
    (seconds) => seconds * 1_000,
  ) as [number, number, number, number];
  if (iat < proposed - SKEW_MS) return "the token is older than the proposal";
  if (iat > at + SKEW_MS || nbf > at + SKEW_MS) return "the token is from the future";
  if (at >= exp + SKEW_MS) return "the token had expired";
  if (at - iat > AGE_MS) return `the token is ${at - iat} ms old`;
  if (signedIn < proposed - SKEW_MS) return "the sign-in is older than the proposal";
  if (signedIn > iat + SKEW_MS) return "the sign-in is later than the token";
  return at - signedIn > AGE_MS ? `the sign-in is ${at - signedIn} ms old` : undefined;
}

/** A client that asks in its own name (RFC 6749 §4.4) is its own subject; some write it as an address. */
function isMachine({ aud, azp, sub }: Claims): boolean {
  return sub === azp || holds(aud, sub) || sub.includes("@");
}

function holds(claim: unknown, value: string): boolean {
  return Array.isArray(claim) ? claim.includes(value) : claim === value;
}

function isComplete(claims: Record<string, unknown>): claims is Claims {
  const right = (name: string): boolean => {
    const value = claims[name];
    if (value === undefined) return !REQUIRED.includes(name);
    if (SECONDS.includes(name)) return Number.isSafeInteger(value) && Number(value) >= 0;
    if (TEXTS.includes(name)) return isText(value);
    return (Array.isArray(value) && value.every(isText)) || (name === "aud" && isText(value));
  };
  return [...SECONDS, ...TEXTS, ...LISTS].every(right);
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

function objectIn(segment: string): Record<string, unknown> | undefined {
  const bytes = decodeBase64url(segment);
  try {
    const value: unknown = JSON.parse((bytes && decodeUtf8(bytes)) ?? "");
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined; // no JSON: nothing can be asked of it
  }
}

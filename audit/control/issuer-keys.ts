/** Keys of issuers as they publish them, known from elsewhere than the log. */
import { z } from "zod";
import { IssuerJwk } from "../../src/core/control.ts";
import { type Sha256, sha256 } from "../../src/core/hash.ts";
import { canonical } from "../../src/core/json.ts";
import { encodeBase64url, encodeUtf8 } from "../../src/core/text.ts";

/** Thumbprints (RFC 7638) by issuer. */
export type IssuerKeys = ReadonlyMap<string, ReadonlySet<string>>;

/** `{ "<issuer>": { "keys": [<JWK>, …] }, … }`: of each its JWKS (RFC 7517 §5). */
const Given = z.record(z.string().min(1), z.object({ keys: z.array(z.looseObject({})) }));

/** What RFC 7638 §3.2 hashes of a key, of whichever type. */
const NEEDED = ["crv", "e", "kty", "n", "x", "y"];

/** Keys that no approval can rest on are passed over. Undefined for all that is no such JSON. */
export function readIssuerKeys(text: string): IssuerKeys | undefined {
  const given = Given.safeParse(parse(text));
  if (!given.success) return undefined;
  const byIssuer = Object.entries(given.data).map(([issuer, { keys }]) => {
    return [issuer, new Set(keys.flatMap(thumbprintOf))] as const;
  });
  return new Map(byIssuer);
}

/** A JWK that holds nothing but its needed members is, in canonical form, its own input to the hash. */
export function thumbprint(jwk: IssuerJwk, hash: Sha256 = sha256): string {
  return encodeBase64url(hash(encodeUtf8(canonical(jwk))));
}

function thumbprintOf(jwk: Readonly<Record<string, unknown>>): string[] {
  const members = NEEDED.filter((name) => name in jwk).map((name) => [name, jwk[name]]);
  const needed = IssuerJwk.safeParse(Object.fromEntries(members));
  return needed.success ? [thumbprint(needed.data)] : [];
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // no JSON, so no JWKS
  }
}

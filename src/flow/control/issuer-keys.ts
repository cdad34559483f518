/** Keys of issuers of ID tokens, kept on the log: an issuer forgets them, and an auditor asks years later. */
import type { IssuerJwk } from "../../core/control.ts";
import { canonical } from "../../core/json.ts";
import { readRegister } from "../../store/registers.ts";
import type { Random } from "../clock.ts";
import { salt } from "../log/chain.ts";
import type { Held, Put } from "../log/commit-entry.ts";
import { decodedAs } from "../usage/show.ts";

/** Far above what issuers rotate to in the life of a log. */
const KEYS_MAX = 10_000;

interface Seen {
  issuer: string;
  jwk: IssuerJwk;
  kid: string;
}

/**
 * Index of the entry that has this key of this issuer; written, if none has.
 *
 * @param by opaque id of the principal whose token it verified
 */
export async function issuerKey(
  put: Put,
  { tx, prefix }: Pick<Held, "tx" | "prefix">,
  { issuer, jwk, kid }: Seen,
  { by, random }: { by: string; random: Random },
): Promise<bigint> {
  const range = { after: -1n, limit: KEYS_MAX };
  const known = await readRegister(tx, prefix.id, "issuer_key", range);
  const same = known.find(({ bytes }) => {
    const { body } = decodedAs("issuer_key", bytes);
    return body.issuer === issuer && body.kid === kid && canonical(body.jwk) === canonical(jwk);
  });
  if (same !== undefined) return same.index;
  const { index } = await put("issuer_key", { by, issuer, jwk, kid, salt: salt(random) });
  return index;
}

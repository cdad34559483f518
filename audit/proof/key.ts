/** The key that signed a report, from the proof of the entry that enrolled it. */
import { admissibleKey, thumbprint, verdict } from "../../src/core/ed25519.ts";
import type { Entry, EntryOf } from "../../src/core/entry.ts";
import { Claim, TYP } from "../../src/core/report.ts";
import { decodeBase64url } from "../../src/core/text.ts";
import { Findings } from "../finding.ts";
import { readStatement } from "../prefix/statement.ts";
import { openProof, type Trusting } from "./open.ts";

export interface SigningKey {
  kid: string;
  publicKey: Uint8Array;
}

/** The key, or why the text does not prove one that could have signed the entry. Throws `CannotLook`. */
export function keyOf(text: string, trusting: Trusting, signed: Entry): SigningKey | string {
  const findings = new Findings();
  const proven = openProof(text, trusting, { findings, open: new Findings() });
  if (proven === undefined) {
    const { code, detail } = findings.first ?? {
      code: "unknown-kind",
      detail: "a later version's",
    };
    return `the key's proof: ${code}: ${detail}`;
  }
  const { entry } = proven;
  if (entry.kind !== "key") return `it is of an entry of kind ${entry.kind}`;
  if (entry.log !== signed.log) return `it is of log ${entry.log}`;
  if (entry.index >= signed.index) return `it was enrolled at ${entry.index}, after the report`;
  return claimedKey(entry, trusting) ?? "its claim is not signed by the key that it names";
}

function claimedKey({ body, log }: EntryOf<"key">, { verify }: Trusting): SigningKey | undefined {
  const claim = readStatement(body.jws, TYP.claim, Claim);
  if (typeof claim === "string" || claim.payload.log !== log) return undefined;
  const { input, kid, signature } = claim.jws;
  const publicKey = decodeBase64url(claim.payload.public_key.x);
  if (publicKey === undefined || kid !== body.kid || thumbprint(publicKey) !== kid)
    return undefined;
  const holds = admissibleKey(publicKey) && verdict(signature, input, publicKey, verify);
  return holds ? { kid, publicKey } : undefined;
}

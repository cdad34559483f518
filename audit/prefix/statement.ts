/** What an agent signed, read strictly. None of it depends on the log, so it may be read anywhere. */
import type { z } from "zod";
import { type Verify, verdict } from "../../src/core/ed25519.ts";
import type { Sha256 } from "../../src/core/hash.ts";
import { parseCanonical } from "../../src/core/json.ts";
import { type CompactJws, readCompact } from "../../src/core/jws.ts";
import { Attestation, fact, Report, TYP } from "../../src/core/report.ts";
import { encodeUtf8 } from "../../src/core/text.ts";

export interface Statement<P> {
  jws: CompactJws;
  payload: P;
}

/** The rule that a statement's form breaks. */
export type Unreadable = "jws-malformed" | "jws-payload";

export function readStatement<P>(
  text: string,
  typ: string,
  shape: z.ZodType<P>,
): Statement<P> | Unreadable {
  const jws = readCompact(text);
  if (jws?.typ !== typ) return "jws-malformed";
  const payload = shape.safeParse(parseCanonical(jws.payload));
  return payload.success ? { jws, payload: payload.data } : "jws-payload";
}

interface Said<K extends string, P> {
  kind: K;
  kid: string;
  payload: P;
  /** SHA-256 of the text. */
  digest: Uint8Array;
  /** Whether the signature holds under the key whose thumbprint is `kid`; false where none was learned. */
  holds: boolean;
}
export type SaidReport = Said<"report", Report> & { fact: Uint8Array };
export type SaidAttestation = Said<"attestation", Attestation>;
export type Reading = SaidReport | SaidAttestation | Unreadable;

export interface SignedText {
  kind: "report" | "attestation";
  text: string;
}

export function readSigned(
  { kind, text }: SignedText,
  keys: ReadonlyMap<string, Uint8Array>,
  { hash, verify }: { hash: Sha256; verify: Verify },
): Reading {
  const read =
    kind === "report"
      ? readStatement(text, TYP.report, Report)
      : readStatement(text, TYP.attestation, Attestation);
  if (typeof read === "string") return read;
  const { jws, payload } = read;
  const { input, kid, signature } = jws;
  const key = keys.get(kid);
  const holds = key !== undefined && verdict(signature, input, key, verify);
  const said = { kid, digest: hash(encodeUtf8(text)), holds };
  return "counter" in payload && "job" in payload
    ? { kind: "report", ...said, payload, fact: fact(payload, hash) }
    : { kind: "attestation", ...said, payload };
}

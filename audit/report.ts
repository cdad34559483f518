/**
 * A report that an auditor signs: a compact JWS (RFC 7515) whose payload is canonical JSON. It is of no
 * use to judge a log by, and lets whoever trusts the auditor know what was looked at, and how it went.
 */
import { thumbprint, type Verify, verdict } from "../src/core/ed25519.ts";
import { canonical, type Json, parseCanonical } from "../src/core/json.ts";
import { headerSegment } from "../src/core/jws.ts";
import { decodeBase64url, encodeBase64url, encodeUtf8 } from "../src/core/text.ts";

const TYP = "audit-report-v1+jws";

/** Numbers, which canonical JSON does not have, become their decimal texts. */
export function signReport(
  document: object,
  { publicKey, sign }: { publicKey: Uint8Array; sign(input: Uint8Array): Uint8Array },
): string {
  const header = headerSegment(thumbprint(publicKey), TYP);
  const input = `${header}.${encodeBase64url(encodeUtf8(canonical(withoutNumbers(document))))}`;
  return `${input}.${encodeBase64url(sign(encodeUtf8(input)))}`;
}

/** What the report says, if it is this key's; else why that is not known. */
export function readReport(
  text: string,
  publicKey: Uint8Array,
  verify: Verify,
):
  | { payload: { [name: string]: Json } }
  | { problem: "malformed" | "other-key" | "bad-signature" } {
  const [header = "", body = "", seal = "", ...rest] = text.split(".");
  const [bytes, signature] = [decodeBase64url(body), decodeBase64url(seal)];
  if (rest.length > 0 || bytes === undefined || signature === undefined) {
    return { problem: "malformed" };
  }
  if (header !== headerSegment(thumbprint(publicKey), TYP)) return { problem: "other-key" };
  const input = encodeUtf8(`${header}.${body}`);
  if (!verdict(signature, input, publicKey, verify)) return { problem: "bad-signature" };
  const payload = parseCanonical(bytes);
  if (typeof payload !== "object" || Array.isArray(payload)) return { problem: "malformed" };
  return { payload };
}

function withoutNumbers(value: unknown): Json {
  if (typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return value.map(withoutNumbers);
  if (typeof value !== "object" || value === null) throw new Error("report: no JSON");
  const members = Object.entries(value).map(([name, member]) => [name, withoutNumbers(member)]);
  return Object.fromEntries(members);
}

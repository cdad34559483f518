/** Logs under dual control for the auditor's tests: two persons, an issuer, and tokens that say what a test wants. */
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from "jose";
import { type Action, IssuerJwk } from "../../src/core/control.ts";
import type { Body } from "../../src/core/entry.ts";
import { canonical, type Json } from "../../src/core/json.ts";
import { encodeBase64url } from "../../src/core/text.ts";
import { LOG_ID, SALT, TestLog } from "./log.ts";

export const ISSUER = "https://sign-in.example";
export const ALGORITHMS = ["RS256", "ES256", "ES384", "EdDSA"] as const;

export interface SigningKey {
  alg: string;
  kid: string;
  jwk: IssuerJwk;
  privateKey: CryptoKey;
}

export async function signingKey(alg: string, kid: string): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = IssuerJwk.parse(await exportJWK(publicKey));
  return { alg, kid, jwk, privateKey };
}

/** What differs from a good approval. */
export interface Forged {
  by?: string;
  claims?: Record<string, unknown>;
  header?: Record<string, unknown>;
  /** Signs in the place of the issuer's key. */
  signer?: SigningKey;
  issuer_key?: string;
}

export const APPROVERS: Body<"role_mapping">["grants"] = [
  { claim: "sub", issuer: ISSUER, namespaces: "*", role: "approver", value: "second" },
  { claim: "sub", issuer: ISSUER, namespaces: "*", role: "approver", value: "first" },
  { claim: "sub", issuer: ISSUER, namespaces: "*", role: "finance", value: "first" },
];

export class Deciding {
  readonly log: TestLog;
  readonly key: SigningKey;
  /** Index of the entry with the issuer's key. */
  readonly issuerKey: string;

  constructor(key: SigningKey, grants = APPROVERS) {
    this.log = new TestLog(LOG_ID, { control: "dual" });
    this.key = key;
    this.log.write("role_mapping", { approval: "", by: "operator", grants, salt: SALT });
    const { jwk, kid } = key;
    const named = { by: "p_second", issuer: ISSUER, salt: SALT };
    this.issuerKey = this.log.write("issuer_key", { ...named, jwk, kid });
  }

  /** The proposal of a body by the first person: its index. */
  propose(
    action: Action,
    body: Readonly<Record<string, unknown>>,
    said: Partial<Body<"proposal">> = {},
  ): string {
    return this.log.write("proposal", {
      action,
      by: "p_first",
      content: contentOf(body),
      effect: "{}",
      expires_at: new Date(Date.parse(this.log.at) + 86_400_000).toISOString(),
      proposer: { issuer: ISSUER, subject: "first" },
      reason: "incident",
      salt: SALT,
      ticket: "CASE-1",
      ...said,
    });
  }

  /** The second person's sign-in for a proposal. */
  async token(proposal: string, { claims, header, signer = this.key }: Forged = {}) {
    const leaf = this.log.leaves[Number(proposal)] ?? new Uint8Array();
    const now = Math.floor(Date.parse(this.log.at) / 1_000);
    const said = { iss: ISSUER, sub: "second", aud: "minutebook", azp: "minutebook" };
    const times = { iat: now, exp: now + 300, auth_time: now - 5 };
    return await new SignJWT({ ...said, ...times, nonce: encodeBase64url(leaf), ...claims })
      .setProtectedHeader({ alg: signer.alg, kid: this.key.kid, typ: "JWT", ...header })
      .sign(signer.privateKey);
  }

  /** The approval of a proposal by the second person: its index. */
  async approve(proposal: string, forged: Forged = {}): Promise<string> {
    const token = await this.token(proposal, forged);
    const { by = "p_second", issuer_key = this.issuerKey } = forged;
    return this.log.write("approval", { by, issuer_key, proposal, salt: SALT, token });
  }

  /** Proposes a body, and approves it: the index that its entry names. */
  async decide(action: Action, body: Readonly<Record<string, unknown>>): Promise<string> {
    return await this.approve(this.propose(action, body));
  }
}

/** What a proposal says of a body. */
export function contentOf(body: Readonly<Record<string, unknown>>): string {
  const { approval: _, by: __, salt: ___, ...content } = body;
  return canonical(content as Json);
}

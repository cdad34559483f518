/**
 * Whether issuers signed the tokens that approvals rest on, by jose over WebCrypto: in Node and in browsers.
 * It takes its time, so tokens are collected while entries go by, and asked about bundle by bundle.
 */
import { type CryptoKey, compactVerify, errors, importJWK } from "jose";
import type { IssuerJwk } from "../../src/core/control.ts";
import type { Outcome } from "../prefix/rule.ts";
import { Recent } from "../recent.ts";

export interface SignedToken {
  /** Of the approval's entry, and of that with the issuer's key. */
  index: bigint;
  key: bigint;
  token: string;
  alg: string;
  jwk: IssuerJwk;
}

/** Of issuers' keys that are in use at a time. */
const KEYS_MAX = 64;

export class TokenSignatures {
  readonly #outcome: Outcome;
  readonly #keys = new Recent<CryptoKey | Uint8Array>(KEYS_MAX);
  #waiting: SignedToken[] = [];

  constructor(outcome: Outcome) {
    this.#outcome = outcome;
  }

  note(token: SignedToken): void {
    this.#waiting.push(token);
  }

  /** Judges all that were noted. */
  async settle(): Promise<void> {
    for (const token of this.#waiting.splice(0)) await this.#judge(token);
  }

  async #judge({ alg, index, jwk, key, token }: SignedToken): Promise<void> {
    const { findings, open } = this.#outcome;
    const detail = `by the key of entry ${key}`;
    try {
      const known = await this.#keys.get(`${key} ${alg}`, async () => importJWK(jwk, alg));
      await compactVerify(token, known, { algorithms: [alg] });
    } catch (error) {
      if (isUnable(error)) open.add("approval-unverified", { index }, detail);
      else findings.add("approval-signature", { index }, detail);
    }
  }
}

/** As a browser is that has not the algorithm, or shows the page without TLS: no verdict on the token. */
function isUnable(error: unknown): boolean {
  if (globalThis.crypto?.subtle === undefined) return true;
  if (error instanceof errors.JOSENotSupported) return true;
  return error instanceof DOMException && error.name === "NotSupportedError";
}

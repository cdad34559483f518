/** Keys that reports are signed with: found by the kid, or by the text that names it. */
import { headerSegment } from "../../src/core/jws.ts";
import { TYP } from "../../src/core/report.ts";

export interface KnownKey {
  kid: string;
  publicKey: Uint8Array;
}

export class Keys {
  readonly byKid = new Map<string, Uint8Array>();
  readonly #byHeader = new Map<string, KnownKey>();

  /** `kid` must be the key's thumbprint. */
  learn(kid: string, publicKey: Uint8Array): void {
    this.byKid.set(kid, publicKey);
    this.#byHeader.set(headerSegment(kid, TYP.report), { kid, publicKey });
  }

  /** By a JWS's first segment: a header has one form, and that one text. */
  ofReport(header: string): KnownKey | undefined {
    return this.#byHeader.get(header);
  }
}

/** An issuer of tokens as an organisation has one: bearer tokens for the service, ID tokens for its client. */
import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { type JWTPayload, SignJWT } from "jose";
import { ROLES } from "../../src/core/control.ts";
import type { Role } from "../../src/flow/access/grant.ts";
import { fixedKeys, type Issuer } from "../../src/flow/authenticate.ts";

const MAKE = {
  RS256: () => generateKeyPairSync("rsa", { modulusLength: 2_048 }).privateKey,
  ES256: () => generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey,
  ES384: () => generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey,
  EdDSA: () => generateKeyPairSync("ed25519").privateKey,
} as const;
export type IdAlgorithm = keyof typeof MAKE;

export const CLIENT = "minutebook-approvals";
const AUDIENCE = "minutebook";

export interface Made {
  nonce: string;
  /** Milliseconds since the epoch. */
  now: number;
  /** Instead of, or beside, those of a good token. */
  claims?: JWTPayload;
  header?: Record<string, unknown>;
  key?: KeyObject | Uint8Array;
  /** Seconds that it, and the sign-in, is old. */
  age?: number;
}

export class IdIssuer {
  readonly name: string;
  readonly algorithm: IdAlgorithm;
  #key: KeyObject;
  #kid = 1;

  constructor(name: string, algorithm: IdAlgorithm) {
    this.name = name;
    this.algorithm = algorithm;
    this.#key = MAKE[algorithm]();
  }

  /** As the service knows it. */
  get configured(): Issuer {
    return {
      issuer: this.name,
      audience: AUDIENCE,
      client: CLIENT,
      algorithms: [this.algorithm],
      key: (header, token) => fixedKeys({ keys: [this.publicJwk] })(header, token),
      grants: ROLES.map((role) => {
        return { claim: "roles", value: role, role, logs: "*", namespaces: "*" } as const;
      }),
    };
  }

  get publicKey(): KeyObject {
    return createPublicKey(this.#key);
  }

  get publicJwk() {
    return { ...this.publicKey.export({ format: "jwk" }), kid: `key ${this.#kid}` };
  }

  /** From here on it signs with another key, and has forgotten the one before. */
  rotate(): void {
    this.#key = MAKE[this.algorithm]();
    this.#kid += 1;
  }

  async bearer(subject: string, roles: readonly Role[]): Promise<string> {
    const now = Math.floor(Date.now() / 1_000);
    return await new SignJWT({ roles: [...roles] })
      .setProtectedHeader({ alg: this.algorithm, kid: `key ${this.#kid}` })
      .setIssuer(this.name)
      .setAudience(AUDIENCE)
      .setSubject(subject)
      .setIssuedAt(now)
      .setExpirationTime(now + 3_600)
      .sign(this.#key);
  }

  async idToken(
    subject: string,
    { nonce, now, claims = {}, header = {}, key = this.#key, age = 0 }: Made,
  ): Promise<string> {
    const at = Math.floor(now / 1_000) - age;
    const payload = {
      ...{ iss: this.name, sub: subject, aud: CLIENT, azp: CLIENT, roles: ["approver"] },
      ...{ iat: at, exp: at + 3_600, auth_time: at, nonce, ...claims },
    };
    return await new SignJWT(payload)
      .setProtectedHeader({ alg: this.algorithm, kid: `key ${this.#kid}`, ...header })
      .sign(key);
  }
}

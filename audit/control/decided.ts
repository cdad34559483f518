/** Proposals and approvals as the entries so far have said them. */
import type { Action, IssuerJwk, MappedRole } from "../../src/core/control.ts";
import type { Decision } from "./decisions.ts";
import type { IssuerKeys } from "./issuer-keys.ts";
import type { SignedToken } from "./signature.ts";

export interface Proposal {
  action: Action;
  /** Principal id of its proposer, and who that is to which issuer. */
  by: string;
  proposer: { issuer: string; subject: string };
  /** Of its entry. */
  at: string;
  nonce: string;
  expires_at: string;
  content: string;
  reason: string;
  ticket: string;
}

export interface Approval {
  /** Index of the proposal, and the proposal itself while no entry has used it. */
  proposal: string;
  asks: Proposal | undefined;
  by: string;
  /** Whether the entry that it lets in is there. */
  used: boolean;
}

/** A key that approvals rest on, as the log has it. */
export interface IssuerKey {
  issuer: string;
  kid: string;
  jwk: IssuerJwk;
  /** RFC 7638, base64url. */
  thumbprint: string;
  approvals: bigint;
}

/** Told to whoever looks at an issuer's own keys. */
export type ReliedKey = Omit<IssuerKey, "jwk">;

export interface Decided {
  /** Of the newest role mapping; undefined while there is none. */
  grants: readonly MappedRole[] | undefined;
  issuerKeys: Map<bigint, IssuerKey>;
  /** Open ones only. */
  proposals: Map<bigint, Proposal>;
  approvals: Map<bigint, Approval>;
  /** The approval that the next entry must use. */
  awaiting: bigint | undefined;
  /** Told of each token whose signature is still to be verified, and of each end of a proposal. */
  token(token: SignedToken): void;
  decision(decision: Decision): void;
  /** Keys of issuers as known from elsewhere, where they are. */
  known: IssuerKeys | undefined;
}

export function startDecided(told: Pick<Decided, "token" | "decision" | "known">): Decided {
  return {
    ...told,
    grants: undefined,
    issuerKeys: new Map(),
    proposals: new Map(),
    approvals: new Map(),
    awaiting: undefined,
  };
}

/** Keys that some approval rests on. */
export function relied({ issuerKeys }: Decided): ReliedKey[] {
  return [...issuerKeys.values()]
    .filter(({ approvals }) => approvals > 0n)
    .map(({ jwk: _, ...key }) => key);
}

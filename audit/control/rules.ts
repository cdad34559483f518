/** Who may decide, what was proposed, and that a second person approved it by signing in (DESIGN §12). */
import type { MappedRole } from "../../src/core/control.ts";
import type { Body } from "../../src/core/entry.ts";
import { parseCanonical } from "../../src/core/json.ts";
import { encodeBase64url, encodeUtf8 } from "../../src/core/text.ts";
import type { Rules, Turn } from "../prefix/rule.ts";
import type { State } from "../prefix/state.ts";
import { isContent } from "./content.ts";
import type { IssuerKey, Proposal } from "./decided.ts";
import { thumbprint } from "./issuer-keys.ts";
import { faultsOf, fits, readIdToken } from "./token.ts";

export const CONTROL_RULES = {
  mode,
  role_mapping: roleMapping,
  issuer_key: issuerKey,
  proposal: propose,
  approval: approve,
  proposal_ended: endProposal,
} satisfies Rules;

const PROPOSAL_MS_MAX = 31 * 86_400_000;
/** What begins so is of the service itself, and of no system outside. */
const OWN_SOURCE = "minutebook/";

function mode(state: State, body: Body<"mode">, turn: Turn): void {
  const back = state.control === "dual" && body.control === "single";
  turn.expect(!back, "mode-control", "it goes back from dual control");
  const able = body.control === "single" || approves(state.decided.grants ?? []);
  turn.expect(able, "approver-needed", "dual control, and no mapping with an approver");
  const { billing_from: from } = body;
  const before = state.billingFrom;
  const ahead = from === before || (from > turn.at && before > turn.at);
  turn.expect(ahead, "mode-billing-from", `${from} instead of ${before}, written ${turn.at}`);
  const own = body.sources.find((source) => source.startsWith(OWN_SOURCE));
  turn.expect(own === undefined, "mode-sources", `${own} is the service's own`);
  state.control = body.control;
  state.billingFrom = from;
  state.sources = new Set(body.sources);
}

function roleMapping(state: State, { grants }: Body<"role_mapping">, turn: Turn): void {
  const able = state.control === "single" || approves(grants);
  turn.expect(able, "approver-needed", "it makes nobody an approver");
  const bound = grants.find(({ namespaces, role }) => namespaces !== "*" && role !== "viewer");
  turn.expect(bound === undefined, "role-bound", `${bound?.role} bound to namespaces`);
  state.decided.grants = grants;
}

function issuerKey(state: State, { issuer, jwk, kid }: Body<"issuer_key">, turn: Turn): void {
  const { decided, tools } = state;
  const print = thumbprint(jwk, tools.hash);
  const known = decided.known === undefined || decided.known.get(issuer)?.has(print);
  turn.expect(known === true, "issuer-key-unknown", `${print} of ${issuer}`);
  decided.issuerKeys.set(turn.index, { issuer, kid, jwk, thumbprint: print, approvals: 0n });
}

function propose({ decided }: State, body: Body<"proposal">, turn: Turn): void {
  const { action, content, effect, expires_at } = body;
  turn.expect(isContent(action, content, turn.at), "proposal-content", "content");
  turn.expect(isObject(effect), "proposal-content", "effect");
  const lasts = Date.parse(expires_at) - Date.parse(turn.at);
  const bounded = lasts > 0 && lasts <= PROPOSAL_MS_MAX;
  turn.expect(bounded, "proposal-expiry", `until ${expires_at}, written ${turn.at}`);
  const { by, proposer, reason, ticket } = body;
  const nonce = encodeBase64url(turn.leaf);
  const said = { action, by, proposer, content, expires_at, reason, ticket };
  decided.proposals.set(turn.index, { ...said, at: turn.at, nonce });
}

function approve({ decided }: State, body: Body<"approval">, turn: Turn): void {
  const proposal = decided.proposals.get(BigInt(body.proposal));
  const open = proposal !== undefined && turn.at < proposal.expires_at;
  const detail = `entry ${body.proposal} is no proposal that is open at ${turn.at}`;
  turn.expect(open, "approval-proposal", detail);
  decided.proposals.delete(BigInt(body.proposal));
  const { by } = body;
  decided.approvals.set(turn.index, { proposal: body.proposal, asks: proposal, by, used: false });
  decided.awaiting = turn.index;
  if (proposal === undefined) return;
  turn.expect(by !== proposal.by, "same-person", `${by} proposed and approved`);
  const key = decided.issuerKeys.get(BigInt(body.issuer_key));
  if (key === undefined) {
    turn.expect(false, "approval-token", `entry ${body.issuer_key} is no issuer's key`);
    return;
  }
  key.approvals += 1n;
  readApproval(decided, turn, { body, key, proposal });
}

function readApproval(
  decided: State["decided"],
  turn: Turn,
  { body, key, proposal }: { body: Body<"approval">; key: IssuerKey; proposal: Proposal },
): void {
  const token = readIdToken(body.token);
  const named = token?.claims.iss === key.issuer && (token.kid === "" || token.kid === key.kid);
  if (token === undefined || !named || !fits(token.alg, key.jwk)) {
    turn.expect(false, "approval-token", `no ID token by the key of entry ${body.issuer_key}`);
    return;
  }
  const { at: proposed, nonce, proposer } = proposal;
  const rules = { at: turn.at, nonce, proposed, proposer, grants: decided.grants ?? [] };
  for (const [code, detail] of faultsOf(token.claims, rules)) turn.expect(false, code, detail);
  decided.token({
    index: turn.index,
    key: BigInt(body.issuer_key),
    token: body.token,
    alg: token.alg,
    jwk: key.jwk,
  });
}

function endProposal({ decided }: State, body: Body<"proposal_ended">, turn: Turn): void {
  const { by, outcome, proposal: index, reason } = body;
  const proposal = decided.proposals.get(BigInt(index));
  turn.expect(proposal !== undefined, "proposal-end", `entry ${index} is no open proposal`);
  if (proposal === undefined) return;
  const { action, by: proposer, expires_at, ticket } = proposal;
  if (outcome === "withdrawn") turn.expect(by === proposer, "proposal-end", `withdrawn by ${by}`);
  if (outcome === "refused") turn.expect(by !== proposer, "same-person", `${by} refused its own`);
  if (outcome === "expired") {
    turn.expect(turn.at >= expires_at, "proposal-end", `it holds until ${expires_at}`);
  }
  decided.proposals.delete(BigInt(index));
  const said = { action, outcome, proposal: index, proposer, decider: by, reason, ticket };
  decided.decision({ index: turn.index, at: turn.at, ...said });
}

function approves(grants: readonly MappedRole[]): boolean {
  return grants.some(({ role }) => role === "approver");
}

function isObject(text: string): boolean {
  const value = parseCanonical(encodeUtf8(text));
  return typeof value === "object" && !Array.isArray(value);
}

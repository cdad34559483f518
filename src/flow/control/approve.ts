/**
 * The second person says yes: their ID token, the issuer's key that verifies it, and what was asked for
 * come on the log together, or nothing does and the proposal stays open.
 */
import { isSamePerson, nonceOf, readContent } from "../../core/approval.ts";
import type { Action } from "../../core/control.ts";
import { type IdTokenRules, judgeIdToken, personOf } from "../../core/id-token.ts";
import { Problem } from "../../core/problem.ts";
import { salt } from "../log/chain.ts";
import type { Held, Receipt } from "../log/commit-entry.ts";
import { write } from "./assemble.ts";
import { effectText } from "./effect-text.ts";
import { issuerKey } from "./issuer-keys.ts";
import { openProposal } from "./open-proposal.ts";
import type { Asker, Controlling } from "./propose.ts";
import type { Deciding } from "./rules.ts";
import { newestMapping, type Standing } from "./standing.ts";
import { takeEffect } from "./take-effect.ts";
import { type VerifiedIdToken, verifyIdToken } from "./token.ts";

/** Where what was asked for stands, and its approval. */
export interface Approved extends Receipt {
  action: Action;
  approval: string;
}

/**
 * @param idToken of the principal who asks
 * @throws Problem `not-found`, `proposal-ended`, `proposal-expired`, `same-person`, `invalid-approval`,
 *   `token-says-too-much`, `issuer-unavailable`, `already-decided`, `proposal-outdated`; and whatever refuses the entry
 */
export async function approve(
  approving: Controlling,
  { log, index, by, person }: Asker & { log: string; index: bigint },
  idToken: string,
): Promise<Approved> {
  const { appender, closeDelayDays, issuers, keyring, quota, random } = approving;
  const verified = await verifyIdToken(issuers, idToken, quota.clock.now());
  if (!isSamePerson(personOf(verified.claims), person)) throw new Problem("invalid-approval");
  const { jwk, kid, text: token } = verified;
  const { content, ...approved } = await appender.together(log, async (put, held) => {
    const proposal = await openProposal(held, index);
    const deciding = { ...held, closeDelayDays, issuers, keyring };
    await assertApproval(held, proposal, verified);
    await assertAsShown(deciding, proposal);
    const seen = { issuer: person.issuer, jwk, kid };
    const issuer_key = String(await issuerKey(put, held, seen, { by, random }));
    const said = { by, issuer_key, proposal: String(index), salt: salt(random), token };
    const approval = String((await put("approval", said)).index);
    const { action } = proposal.body;
    const content = readContent(proposal.body);
    const sealed = { approval, by: proposal.body.by, salt: salt(random) };
    const receipt = await write(put, deciding, action, { content, sealed });
    return { ...receipt, action, approval, content };
  });
  await takeEffect(approving, { log, action: approved.action, content }, approved);
  return approved;
}

/** Their effect tells of figures that go on, and their own rules of what may not have changed. */
const MOVING: readonly Action[] = [
  "adjustment",
  "conflict_resolved",
  "credit_run",
  "hold_resolved",
  "month_closing",
];

/**
 * Who approves has seen what would be taken away: it is still just that.
 *
 * @throws Problem `proposal-outdated`
 */
async function assertAsShown(deciding: Deciding, { body }: Standing<"proposal">): Promise<void> {
  const { action, effect } = body;
  if (MOVING.includes(action)) return;
  const now = await effectText(deciding, action, readContent(body));
  if (now !== effect) throw new Problem("proposal-outdated");
}

/** Under the head's lock: what the token must say depends on the proposal and on the newest mapping. */
async function assertApproval(
  { tx, prefix, at }: Held,
  { body, leaf, at: proposedAt }: Standing<"proposal">,
  { claims }: VerifiedIdToken,
): Promise<void> {
  const { proposer } = body;
  if (isSamePerson(personOf(claims), proposer)) throw new Problem("same-person");
  const grants = (await newestMapping(tx, prefix.id)) ?? [];
  const rules: IdTokenRules = { at, nonce: nonceOf(leaf), proposedAt, proposer, grants };
  const refused = judgeIdToken(claims, rules);
  if (refused !== undefined) throw new Problem(refused);
}

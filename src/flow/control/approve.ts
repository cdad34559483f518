/**
 * The second person says yes: their ID token, the issuer's key that verifies it, and what was asked for
 * come on the log together, or nothing does and the proposal stays open.
 */
import { isSamePerson, nonceOf, readContent } from "../../core/approval.ts";
import type { Action } from "../../core/control.ts";
import { type IdTokenRules, judgeIdToken, personOf } from "../../core/id-token.ts";
import { Problem } from "../../core/problem.ts";
import type { Issuer } from "../authenticate.ts";
import { salt } from "../log/chain.ts";
import type { Held, Receipt } from "../log/commit-entry.ts";
import { write } from "./assemble.ts";
import { issuerKey } from "./issuer-keys.ts";
import { openProposal } from "./open-proposal.ts";
import type { Asker, Controlling } from "./propose.ts";
import { newestMapping, type Standing } from "./standing.ts";
import { takeEffect } from "./take-effect.ts";
import { type VerifiedIdToken, verifyIdToken } from "./token.ts";

export interface Approving extends Controlling {
  issuers: readonly Issuer[];
}

/** Where what was asked for stands, and its approval. */
export interface Approved extends Receipt {
  action: Action;
  approval: string;
}

/**
 * @param idToken of the principal who asks
 * @throws Problem `not-found`, `proposal-ended`, `proposal-expired`, `same-person`, `invalid-approval`,
 *   `token-says-too-much`, `issuer-unavailable`, `already-decided`; and whatever refuses the entry
 */
export async function approve(
  approving: Approving,
  { log, index, by, person }: Asker & { log: string; index: bigint },
  idToken: string,
): Promise<Approved> {
  const { appender, closeDelayDays, issuers, keyring, quota, random } = approving;
  const verified = await verifyIdToken(issuers, idToken, quota.clock.now());
  if (!isSamePerson(personOf(verified.claims), person)) throw new Problem("invalid-approval");
  const { jwk, kid, text: token } = verified;
  const { content, ...approved } = await appender.together(log, async (put, held) => {
    const proposal = await openProposal(held, index);
    await assertApproval(held, proposal, verified);
    const seen = { issuer: person.issuer, jwk, kid };
    const issuer_key = String(await issuerKey(put, held, seen, { by, random }));
    const said = { by, issuer_key, proposal: String(index), salt: salt(random), token };
    const approval = String((await put("approval", said)).index);
    const { action } = proposal.body;
    const content = readContent(proposal.body);
    const sealed = { approval, by: proposal.body.by, salt: salt(random) };
    const deciding = { ...held, closeDelayDays, keyring };
    const receipt = await write(put, deciding, action, { content, sealed });
    return { ...receipt, action, approval, content };
  });
  await takeEffect(approving, { log, action: approved.action, content }, approved);
  return approved;
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

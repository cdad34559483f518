/** What somebody asks for, for a second person to decide about. */
import { z } from "zod";
import { admit } from "../../core/admit.ts";
import { PROPOSAL_DAYS_MAX } from "../../core/admit-control.ts";
import { type Content, nonceOf, type Person } from "../../core/approval.ts";
import { Action } from "../../core/control.ts";
import { BODY, type Body } from "../../core/entry.ts";
import { isAddress } from "../../core/id-token.ts";
import { canonical } from "../../core/json.ts";
import { Problem } from "../../core/problem.ts";
import { epochMs, instantText } from "../../core/unit.ts";
import type { Sql } from "../../store/connect.ts";
import { countOpen } from "../../store/proposals.ts";
import type { Issuer } from "../authenticate.ts";
import type { Random } from "../clock.ts";
import type { Keyring } from "../key/keyring.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit-entry.ts";
import { assertClosable } from "../month/closable.ts";
import type { Asking } from "../quota/ask.ts";
import { assemble, assertAllowed, readAsked, write } from "./assemble.ts";
import { effectText } from "./effect-text.ts";
import type { Asked } from "./effects.ts";
import { takeEffect } from "./take-effect.ts";

/** Of one log at a time: who decides must be able to look at each. */
const OPEN_MAX = 1_000n;
const DAY_SECONDS = 86_400;
const EXPIRES_IN_S = 7 * DAY_SECONDS;
const { reason, ticket } = BODY.proposal.shape;

export const NewProposal = z.strictObject({
  action: Action,
  /** The body of the entry, without `approval`, `by` and `salt`; without `effective_from`: at once. */
  content: z.record(z.string(), z.unknown()),
  reason,
  ticket,
  expires_in_s: z
    .int()
    .min(60)
    .max(PROPOSAL_DAYS_MAX * DAY_SECONDS)
    .default(EXPIRES_IN_S),
});
export type NewProposal = z.infer<typeof NewProposal>;

export interface Controlling {
  appender: Appender;
  keyring: Keyring;
  /** Whole days between a month's end and its cut-off. */
  closeDelayDays: bigint;
  /** Whose tokens this service can verify. */
  issuers: readonly Issuer[];
  /** As writer. */
  sql: Sql;
  random: Random;
  quota: Asking;
}

/** Who asks: as the log names them, and as their token does. */
export interface Asker {
  readonly by: string;
  readonly person: Person;
}

/** `done`: the log is under single control, and what was asked for is the entry at `index`. */
export interface Proposed extends Receipt {
  state: "open" | "done";
  /** Canonical JSON, as it stands on the log. */
  effect: string;
  /** Of one that is open: what the approver's ID token carries, and until when. */
  nonce?: string;
  expires_at?: string;
}

/**
 * What could not be written now is refused now. Under single control there is nobody to wait for.
 *
 * @throws Problem `not-found`, `invalid-request`, `too-large`, `token-says-too-much` for who is known by an
 *   address; and whatever refuses the entry that is asked for
 */
export async function propose(
  controlling: Controlling,
  { log, by, person }: Asker & { log: string },
  input: NewProposal,
): Promise<Proposed> {
  const { appender, closeDelayDays, issuers, keyring, random } = controlling;
  const content = readAsked(input.action, input.content);
  const sealed = { by, salt: salt(random) };
  if (input.action === "month_closing") {
    await assertClosable(controlling, log, content as Asked<"month_closing">);
  }
  const proposed = await appender.together(log, async (put, held): Promise<Proposed> => {
    const deciding = { ...held, closeDelayDays, issuers, keyring };
    const isSingle = held.prefix.control === "single";
    // Of the approval it is asked when there is one.
    const written = { ...sealed, approval: isSingle ? "" : "0" };
    const body = await assemble(deciding, input.action, content, written);
    // Before all that takes its time under the head's lock.
    admit(held.prefix, input.action, body, held.at);
    if (isSingle) {
      const effect = await effectText(deciding, input.action, content);
      const asked = { content, sealed: written };
      return { ...(await write(put, deciding, input.action, asked)), state: "done", effect };
    }
    if ((await countOpen(held.tx, log)) >= OPEN_MAX) throw new Problem("proposals-open");
    await assertAllowed(deciding, input.action, body);
    const effect = await effectText(deciding, input.action, content);
    const proposal = proposalOf(input, { content, effect, person, at: held.at });
    const receipt = await put("proposal", { ...proposal, ...sealed });
    const { expires_at } = proposal;
    return { ...receipt, state: "open", effect, nonce: nonceOf(receipt.leaf), expires_at };
  });
  if (proposed.state === "done") {
    await takeEffect(controlling, { log, action: input.action, content }, proposed);
  }
  return proposed;
}

function proposalOf(
  { action, expires_in_s, reason, ticket }: NewProposal,
  asked: { content: Content; effect: string; person: Person; at: string },
): Omit<Body<"proposal">, "by" | "salt"> {
  const { issuer, subject } = asked.person;
  // What an approver's token must not say the log does not say of a proposer either.
  if (isAddress(subject)) throw new Problem("token-says-too-much");
  return {
    action,
    content: canonical(asked.content),
    effect: asked.effect,
    expires_at: instantText(epochMs(asked.at) + expires_in_s * 1_000),
    proposer: { issuer, subject },
    reason,
    ticket,
  };
}

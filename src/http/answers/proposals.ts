/** Proposals, what came of them, and what a source says of its own events. */
import { z } from "zod";
import { Action } from "../../core/control.ts";
import { BODY } from "../../core/entry.ts";
import { HashText, InstantText, IntegerText, LogId, NonEmptyText, Word } from "../../core/unit.ts";
import type * as approve from "../../flow/control/approve.ts";
import type * as count from "../../flow/control/count-source.ts";
import {
  type ProposalPage as Page,
  PROPOSAL_STATES,
  type ShownProposal,
} from "../../flow/control/show.ts";
import type { Receipt as Written } from "../../flow/log/commit-entry.ts";
import { exactly } from "./exactly.ts";
import { AsOf } from "./listings.ts";
import { Receipt } from "./receipts.ts";

const Nonce = z.base64url().length(43);
/** Canonical JSON, as it stands on the log; its members are those of a kind of entry (docs/log-format.md). */
const Content = z.string().min(2);

/** `done`: the log has no second persons, and what was asked for is this entry. */
export const OpenedProposal = z.union([
  Receipt.extend({ log: LogId, state: z.literal("done"), effect: Content }),
  Receipt.extend({
    log: LogId,
    state: z.literal("open"),
    effect: Content,
    nonce: Nonce,
    expires_at: InstantText,
  }),
]);

export const Approval = exactly<
  { log: string; index: string; leaf: string } & Omit<approve.Approved, keyof Written>
>()(Receipt.extend({ log: LogId, action: Action, approval: IntegerText }));

const SHOWN = {
  index: IntegerText,
  at: InstantText,
  leaf: HashText,
  nonce: Nonce,
  action: Action,
  content: Content,
  effect: Content,
  reason: Word,
  ticket: NonEmptyText,
  by: NonEmptyText,
  expires_at: InstantText,
  state: z.enum(PROPOSAL_STATES),
  end: IntegerText.exactOptional(),
  entry: IntegerText.exactOptional(),
};
export const Proposal = exactly<ShownProposal & { log: string }>()(
  z.strictObject({ log: LogId, ...SHOWN }),
);

export const ProposalPage = exactly<Page>()(
  AsOf.extend({
    proposals: z.array(z.strictObject(SHOWN)),
    next: IntegerText.exactOptional(),
  }),
);

export const SourceReceipt = exactly<
  { log: string; index: string; leaf: string } & Omit<count.Counted, keyof Written>
>()(Receipt.extend({ log: LogId, ...statedAndCounted() }));

function statedAndCounted() {
  const { stated, counted } = BODY.source_count.shape;
  return { stated, counted };
}

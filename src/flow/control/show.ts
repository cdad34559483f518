/** Proposals as they stand, for those who propose, decide and audit. */
import { nonceOf } from "../../core/approval.ts";
import type { Action } from "../../core/control.ts";
import { Problem } from "../../core/problem.ts";
import { encodeBase64 } from "../../core/text.ts";
import { instantText } from "../../core/unit.ts";
import type { Transaction } from "../../store/connect.ts";
import { listLogs } from "../../store/logs.ts";
import {
  PROPOSAL_OUTCOMES,
  type ProposalState,
  readProposal,
  readProposals,
} from "../../store/proposals.ts";
import type { Clock } from "../clock.ts";
import { type AsOf, asOf, type Showing, snapshot } from "../usage/show.ts";
import { standing } from "./standing.ts";

export const PROPOSAL_STATES = ["open", ...PROPOSAL_OUTCOMES] as const;
type ShownState = (typeof PROPOSAL_STATES)[number];

export interface ShownProposal {
  index: string;
  at: string;
  leaf: string;
  /** What the approver's ID token carries. */
  nonce: string;
  action: Action;
  /** Canonical JSON, as it stands on the log. */
  content: string;
  effect: string;
  reason: string;
  ticket: string;
  by: string;
  expires_at: string;
  state: ShownState;
  /** Index of the entry that ended it: of the approval, if it was approved. */
  end?: string;
  /** Index of the entry that was asked for. */
  entry?: string;
}

export interface ProposalSearch {
  log: string;
  state?: ShownState | undefined;
  /** Those before it. */
  before?: bigint | undefined;
}

/** `next`, where there is more, is the `before` of the next page. */
export interface ProposalPage extends AsOf {
  proposals: ShownProposal[];
  next?: string;
}

const PAGE = 50;
/** Above every index that an entry can have. */
const ANY_INDEX = 2n ** 63n - 1n;

/** Newest first. @throws Problem `not-found` */
export async function showProposals(
  { sql, clock }: Showing & { clock: Clock },
  { log, state, before = ANY_INDEX }: ProposalSearch,
): Promise<ProposalPage> {
  const now = instantText(clock.now());
  return await snapshot(sql, async (tx) => {
    const [listed] = await listLogs(tx, log);
    if (listed === undefined) throw new Problem("not-found");
    const found = await readProposals(tx, log, { state, below: before, now, limit: PAGE });
    const proposals: ShownProposal[] = [];
    for (const each of found) proposals.push(await shown(tx, log, each, now));
    const last = found.at(-1);
    const more = last === undefined || found.length < PAGE ? {} : { next: String(last.index) };
    return { ...asOf(listed), proposals, ...more };
  });
}

/** @throws Problem `not-found` */
export async function showProposal(
  { sql, clock }: Showing & { clock: Clock },
  { log, index }: { log: string; index: bigint },
): Promise<ShownProposal & { log: string }> {
  return await snapshot(sql, async (tx) => {
    const state = await readProposal(tx, log, index);
    if (state === undefined) throw new Problem("not-found");
    return { log, ...(await shown(tx, log, state, instantText(clock.now()))) };
  });
}

async function shown(
  tx: Transaction,
  log: string,
  { index, outcome, end, entry }: ProposalState,
  now: string,
): Promise<ShownProposal> {
  const found = await standing(tx, log, "proposal", index);
  if (found === undefined) throw new Error("show: no proposal entry");
  const { action, by, content, effect, expires_at, reason, ticket } = found.body;
  return {
    index: String(index),
    at: found.at,
    leaf: encodeBase64(found.leaf),
    nonce: nonceOf(found.leaf),
    ...{ action, content, effect, reason, ticket, by, expires_at },
    state: outcome ?? (expires_at <= now ? "expired" : "open"),
    ...(end !== null && { end: String(end) }),
    ...(entry !== null && { entry: String(entry) }),
  };
}

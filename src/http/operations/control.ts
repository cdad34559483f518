/** What two persons decide about, and what sources say of their own events. */
import type { ProblemCode } from "../../core/problem.ts";
import { SourceCount } from "../../flow/control/count-source.ts";
import { Ending } from "../../flow/control/end.ts";
import {
  Approval,
  OpenedProposal,
  Proposal,
  ProposalPage,
  SourceReceipt,
} from "../answers/proposals.ts";
import { Receipt } from "../answers/receipts.ts";
import { json, type Operation, WRITING, written } from "./operation.ts";
import { IdToken, LogProposal, ProposalSearch } from "./shapes.ts";

/** Whatever may refuse the entry that is asked for, of whichever kind. */
const OF_ACTIONS = [
  "approver-needed",
  "two-trackings",
  "namespaces-needed",
  "starts-in-the-past",
  "stale-source-version",
  "another-pack",
  "invalid-factor",
  "project-factors-not-applicable",
  "months-in-order",
  "month-not-ready",
  "month-closed",
  "exceeds-original",
  "already-reversed",
  "cannot-be-reversed",
  "part-of-credit-run",
  "no-preview",
  "preview-outdated",
  "credit-run-under-way",
  "not-billable-usage",
  "inadmissible-key",
  "key-not-held",
  "key-in-use",
  "key-has-ended",
  "last-log-key",
  "successor-unsealed",
  "already-decided",
  "cannot-be-rated",
  "job-stands",
  "correction-needed",
  "token-says-too-much",
] as const satisfies readonly ProblemCode[];

const OF_DECISIONS = ["proposal-ended", "proposal-expired"] as const;

export const CONTROL = {
  "POST /v1/proposals": {
    summary: "Ask for what a second person must approve; what it would do comes with the answer",
    body: json(LogProposal),
    success: { 201: json(OpenedProposal) },
    problems: ["proposals-open", ...OF_ACTIONS, ...WRITING],
  },
  "GET /v1/proposals": {
    summary: "Proposals of a log, newest first",
    query: ProposalSearch,
    success: { 200: json(ProposalPage) },
    problems: [],
  },
  "GET /v1/proposals/:log/:index": {
    summary: "One proposal, and what became of it",
    success: { 200: json(Proposal) },
    problems: [],
  },
  "POST /v1/proposals/:log/:index/approval": {
    summary: "Approve, by a fresh ID token whose nonce is that of the proposal",
    body: json(IdToken),
    success: { 201: json(Approval) },
    problems: [
      "same-person",
      "invalid-approval",
      "proposal-outdated",
      ...OF_DECISIONS,
      ...OF_ACTIONS,
      ...WRITING,
    ],
  },
  "POST /v1/proposals/:log/:index/refusal": {
    summary: "Refuse a proposal of somebody else",
    body: json(Ending),
    success: { 201: json(Receipt) },
    problems: ["same-person", ...OF_DECISIONS, ...WRITING],
  },
  "POST /v1/proposals/:log/:index/withdrawal": {
    summary: "Take a proposal of your own back",
    body: json(Ending),
    success: { 201: json(Receipt) },
    problems: [...OF_DECISIONS, ...WRITING],
  },
  "POST /v1/logs/:log/source_counts": {
    summary: "How many events of a kind a source sent on a day, to be held against the log",
    body: json(SourceCount),
    success: written(SourceReceipt),
    problems: ["approval-required", ...WRITING],
  },
} as const satisfies Readonly<Record<string, Operation>>;

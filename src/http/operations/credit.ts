/** Credit runs, and what another card would have charged. */
import { NewCreditRun, NewReversal } from "../../flow/credit/ask.ts";
import { NewCreditPreview } from "../../flow/credit/preview.ts";
import { NamespaceLines } from "../../flow/credit/upload.ts";
import { WhatIf } from "../../flow/money/what-if.ts";
import {
  CreditPreview,
  CreditProgress,
  CreditRun,
  CreditRunPage,
  NamespaceList,
  WhatIfPart,
} from "../answers/credit.ts";
import { OpenedProposal } from "../answers/proposals.ts";
import { json, type Operation, WRITING } from "./operation.ts";
import { CreditRunSearch } from "./shapes.ts";

const ASKING = ["credit-run-under-way", "token-says-too-much", "already-decided"] as const;

export const CREDIT = {
  "POST /v1/logs/:log/namespace_lists": {
    summary: "Up to 100,000 namespaces, one a line, for a credit run to name by their digest",
    body: json(NamespaceLines),
    success: { 201: json(NamespaceList) },
    problems: ["too-many"],
  },
  "POST /v1/logs/:log/credit_previews": {
    summary: "What a credit run would take back or give; nothing is written on the log",
    body: json(NewCreditPreview),
    success: { 201: json(CreditPreview) },
    problems: [],
  },
  "POST /v1/logs/:log/credit_runs": {
    summary: "Ask for a credit run of just the lines of a preview",
    body: json(NewCreditRun),
    success: { 201: json(OpenedProposal) },
    problems: ["no-preview", "preview-outdated", ...ASKING, ...WRITING],
  },
  "GET /v1/logs/:log/credit_runs": {
    summary: "Credit runs of a log and how far they have come, newest first",
    query: CreditRunSearch,
    success: { 200: json(CreditRunPage) },
    problems: [],
  },
  "GET /v1/logs/:log/credit_runs/:index": {
    summary: "One credit run, and how far it has come",
    success: { 200: json(CreditRun) },
    problems: [],
  },
  "POST /v1/logs/:log/credit_runs/:index/apply": {
    summary: "Write a run's lines for some seconds; the service does it beside requests anyway",
    success: { 200: json(CreditProgress) },
    problems: ["no-preview", ...WRITING],
  },
  "POST /v1/logs/:log/credit_runs/:index/reverse": {
    summary: "Ask for the run that takes another one back as a whole",
    body: json(NewReversal),
    success: { 201: json(OpenedProposal) },
    problems: [
      "already-reversed",
      "cannot-be-reversed",
      "exceeds-original",
      "preview-outdated",
      ...ASKING,
      ...WRITING,
    ],
  },
  "POST /v1/logs/:log/what_if": {
    summary: "What a card would have charged in past months, part by part; nothing is written",
    body: json(WhatIf),
    success: { 200: json(WhatIfPart) },
    problems: ["invalid-factor", "project-factors-not-applicable"],
  },
} as const satisfies Readonly<Record<string, Operation>>;

/** What builds cost: cards, classes, limits, packs. */
import { NewAccount } from "../../flow/money/account.ts";
import { NewCard } from "../../flow/rate/card.ts";
import { NewClass } from "../../flow/rate/classify.ts";
import { NewLimit } from "../../flow/rate/limit.ts";
import { Receipt } from "../answers/receipts.ts";
import { json, type Operation, WRITING, written } from "./operation.ts";
import { LogPack } from "./shapes.ts";

export const FINANCE = {
  "POST /v1/logs/:log/rate_cards": {
    summary: "Factors from an instant on",
    body: json(NewCard),
    success: { 201: json(Receipt) },
    problems: [
      "invalid-factor",
      "project-factors-not-applicable",
      "starts-in-the-past",
      "approval-required",
      ...WRITING,
    ],
  },
  "POST /v1/logs/:log/project_classes": {
    summary: "A project's class from an instant on",
    body: json(NewClass),
    success: { 201: json(Receipt) },
    problems: ["starts-in-the-past", "approval-required", ...WRITING],
  },
  "PUT /v1/quotas/:log/:namespace": {
    summary: "A namespace's limit: at once, or from an instant on",
    body: json(NewLimit),
    success: written(Receipt),
    problems: ["stale-source-version", "starts-in-the-past", "approval-required", ...WRITING],
  },
  "PUT /v1/accounts/:log/:namespace": {
    summary: "Who pays for a namespace: at once, or from an instant on",
    body: json(NewAccount),
    success: written(Receipt),
    problems: ["stale-source-version", "starts-in-the-past", "approval-required", ...WRITING],
  },
  "PUT /v1/accounts/:log": {
    summary: "Who pays for all namespaces that have no account of their own",
    body: json(NewAccount),
    success: written(Receipt),
    problems: ["stale-source-version", "starts-in-the-past", "approval-required", ...WRITING],
  },
  "POST /v1/packs": {
    summary: "Minutes that a namespace has bought, or a later version of them",
    body: json(LogPack),
    success: written(Receipt),
    problems: ["stale-source-version", "another-pack", "approval-required", ...WRITING],
  },
} as const satisfies Readonly<Record<string, Operation>>;

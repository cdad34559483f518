/** What builds cost: cards, classes, limits. */
import { NewCard } from "../../flow/rate/card.ts";
import { NewClass } from "../../flow/rate/classify.ts";
import { NewLimit } from "../../flow/rate/limit.ts";
import { Receipt } from "../answers/receipts.ts";
import { json, type Operation, WRITING } from "./operation.ts";

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
  "POST /v1/logs/:log/quotas": {
    summary: "A namespace's limit from an instant on",
    body: json(NewLimit),
    success: { 201: json(Receipt) },
    problems: ["stale-source-version", "starts-in-the-past", "approval-required", ...WRITING],
  },
} as const satisfies Readonly<Record<string, Operation>>;

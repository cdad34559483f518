/** What platforms say of their jobs, and what comes of it. */
import { z } from "zod";
import { NewOwner } from "../../flow/reconcile/assign.ts";
import { Upload } from "../../flow/reconcile/upload.ts";
import { Receipt } from "../answers/receipts.ts";
import {
  AwaitingPage,
  BreakPage,
  Completeness,
  Heard,
  Uploaded,
} from "../answers/reconciliation.ts";
import { json, type Operation, WRITING } from "./operation.ts";
import { BreakSearch, CompletenessSearch, PageSearch } from "./shapes.ts";

const JobEvent = z.looseObject({ object_kind: z.string() });

export const RECONCILIATION = {
  "POST /webhooks/gitlab/:log": {
    summary: "A job event as GitLab sends it, with the log's secret as X-Gitlab-Token",
    body: json(JobEvent),
    success: { 200: json(Heard) },
    problems: ["unauthenticated", "not-found"],
  },
  "POST /v1/logs/:log/platform_jobs": {
    summary:
      "Jobs as the platform has them, up to 1,000; one on each line, or with how far runners are covered",
    body: { ...json(Upload), "application/x-ndjson": z.string() },
    success: { 200: json(Uploaded) },
    problems: ["too-many", "approval-required", ...WRITING],
  },
  "GET /v1/logs/:log/breaks": {
    summary: "Differences between what was reported and what others saw, newest first",
    query: BreakSearch,
    success: { 200: json(BreakPage) },
    problems: [],
  },
  "POST /v1/logs/:log/breaks/:index/owner": {
    summary: "Who looks after a break",
    body: json(NewOwner),
    success: { 201: json(Receipt) },
    problems: ["already-decided", ...WRITING],
  },
  "GET /v1/logs/:log/completeness": {
    summary: "What is known of a day, by runner",
    query: CompletenessSearch,
    success: { 200: json(Completeness) },
    problems: [],
  },
  "GET /v1/logs/:log/awaiting": {
    summary: "Jobs that the platform saw and nobody has reported: billed to nobody",
    query: PageSearch,
    success: { 200: json(AwaitingPage) },
    problems: [],
  },
} as const satisfies Readonly<Record<string, Operation>>;

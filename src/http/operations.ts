/** What each route takes and answers; together with the access table, all of its contract. */
import type { z } from "zod";
import type { ProblemCode } from "../core/problem.ts";
import { NewLogKey } from "../flow/key/log-key.ts";
import { NewLog } from "../flow/log/create.ts";
import { NewVisibility } from "../flow/log/visibility.ts";
import { NewCard } from "../flow/rate/card.ts";
import { NewClass } from "../flow/rate/classify.ts";
import { NewLimit } from "../flow/rate/limit.ts";
import { Promised } from "../flow/report/prove.ts";
import type { Route } from "./access.ts";
import { ConflictPage, HoldPage, KeyPage, LogKeyList, Logs } from "./answers/listings.ts";
import { Checkpoint, Checkpoints, Consistency, Inclusion, Tile } from "./answers/logs.ts";
import { Document, Liveness, Metrics, Readiness } from "./answers/process.ts";
import { KeptPromise } from "./answers/promises.ts";
import {
  AttestationReceipt,
  ClaimReceipt,
  EnrolmentReceipt,
  KeyReceipt,
  LogKeyReceipt,
  LogReceipt,
  Receipt,
  VisibilityReceipt,
} from "./answers/receipts.ts";
import { AcceptedReport, Answered, HeldReport, REPORT_PROBLEMS } from "./answers/reports.ts";
import { Explanation, Usage, UsageTable } from "./answers/usages.ts";
import {
  CheckpointSearch,
  ConsistencySearch,
  InclusionSearch,
  JobSearch,
  Jws,
  KeyRotation,
  LogEnrolment,
  LogRevocation,
  PageSearch,
  Reports,
  TokenClaim,
  UsageSearch,
} from "./shapes.ts";

/** By media type. */
export type Content = Readonly<Record<string, z.ZodType>>;

export interface Operation {
  summary: string;
  query?: z.ZodType;
  body?: Content;
  /** By status; problems are not among them. */
  success: Readonly<Record<number, Content>>;
  /** Beside those that all routes, or all routes with a token or a body, have. */
  problems: readonly ProblemCode[];
}

const json = (shape: z.ZodType): Content => ({ "application/json": shape });
const text = (shape: z.ZodType): Content => ({ "text/plain": shape });
const jose: Content = { "application/jose": Jws };
/** Written now, or standing already. */
const written = (shape: z.ZodType) => ({ 201: json(shape), 200: json(shape) });

const WRITING = [
  "not-found",
  "log-behind",
  "archive-unavailable",
  "signer-unavailable",
] as const satisfies ProblemCode[];

/** What is served is verified first, by the keys that the log is signed with. */
const SERVING = ["archive-unavailable", "signer-unavailable"] as const satisfies ProblemCode[];
/** Besides those of every route with a token. */
const PROVING = ["beyond-checkpoint", ...SERVING] as const satisfies ProblemCode[];

export const OPERATIONS: Readonly<Record<Route, Operation>> = {
  "GET /livez": {
    summary: "The process answers",
    success: { 200: json(Liveness) },
    problems: [],
  },
  "GET /readyz": {
    summary: "Can reports be taken, and what to know besides",
    success: { 200: json(Readiness), 503: json(Readiness) },
    problems: [],
  },
  "GET /openapi.json": {
    summary: "This document",
    success: { 200: json(Document) },
    problems: [],
  },
  "GET /metrics": {
    summary: "Figures for Prometheus, as text",
    success: { 200: text(Metrics) },
    problems: [],
  },
  "POST /v1/reports": {
    summary: "Signed reports: one JWS, or up to 500 with a result for each",
    body: { ...json(Reports), ...jose },
    success: {
      200: json(Answered),
      201: json(AcceptedReport),
      202: json(HeldReport),
    },
    problems: [...REPORT_PROBLEMS, "mixed-logs", "too-many", ...WRITING],
  },
  "POST /v1/attestations": {
    summary: "An agent's high-water marks, signed",
    body: jose,
    success: { 201: json(AttestationReceipt) },
    problems: [
      "malformed",
      "unknown-key",
      "bad-signature",
      "wrong-typ",
      "non-canonical",
      "schema",
      "wrong-log",
      "key-has-ended",
      ...WRITING,
    ],
  },
  "POST /v1/enrolments": {
    summary: "Name runners; the answer holds the one-time token, once",
    body: json(LogEnrolment),
    success: { 201: json(EnrolmentReceipt) },
    problems: ["two-trackings", "namespaces-needed", "starts-in-the-past", ...WRITING],
  },
  "POST /v1/enrolments/claim": {
    summary: "Bring the key for an enrolment",
    body: json(TokenClaim),
    success: written(ClaimReceipt),
    problems: [
      "malformed",
      "inadmissible-key",
      "bad-signature",
      "unknown-token",
      "token-expired",
      "token-used",
      "key-in-use",
      "log-behind",
      "archive-unavailable",
      "signer-unavailable",
    ],
  },
  "POST /v1/keys/rotate": {
    summary: "Replace a key by its successor",
    body: json(KeyRotation),
    success: written(KeyReceipt),
    problems: [
      "malformed",
      "inadmissible-key",
      "bad-signature",
      "unknown-key",
      "wrong-log",
      "unknown-token",
      "token-used",
      "key-in-use",
      "key-has-ended",
      ...WRITING,
    ],
  },
  "POST /v1/receipts/prove": {
    summary: "Proofs of what a receipt promises, under the published checkpoint",
    body: json(Promised),
    success: { 200: json(KeptPromise) },
    problems: ["invalid-receipt", "not-found", "log-behind", ...SERVING],
  },
  "POST /v1/keys/:kid/revoke": {
    summary: "End a key",
    body: json(LogRevocation),
    success: { 201: json(KeyReceipt) },
    problems: ["key-has-ended", ...WRITING],
  },
  "POST /v1/logs": {
    summary: "Make the log of an instance",
    body: json(NewLog),
    success: { 201: json(LogReceipt) },
    problems: ["log-exists"],
  },
  "GET /v1/logs": {
    summary: "The logs that you may see",
    success: { 200: json(Logs) },
    problems: [],
  },
  "GET /logs/:log/checkpoint": {
    summary: "The published checkpoint, with what witnesses signed",
    success: { 200: text(Checkpoint) },
    problems: [...SERVING],
  },
  "GET /logs/:log/checkpoint/:size": {
    summary: "An earlier checkpoint",
    success: { 200: text(Checkpoint) },
    problems: ["beyond-checkpoint", ...SERVING],
  },
  "GET /logs/:log/tile/:path": {
    summary: "A tile or an entry bundle (C2SP tlog-tiles); the path has several segments",
    success: { 200: { "application/octet-stream": Tile } },
    problems: ["invalid-tile", ...PROVING],
  },
  "GET /v1/logs/:log/checkpoints": {
    summary: "Sizes of the checkpoints that are kept",
    query: CheckpointSearch,
    success: { 200: json(Checkpoints) },
    problems: ["invalid-request"],
  },
  "GET /v1/logs/:log/proofs": {
    summary: "That an entry is in the log (C2SP tlog-proof)",
    query: InclusionSearch,
    success: { 200: text(Inclusion) },
    problems: ["invalid-request", ...PROVING],
  },
  "GET /v1/logs/:log/consistency": {
    summary: "That one tree goes on from another (RFC 9162 §2.1.4)",
    query: ConsistencySearch,
    success: { 200: json(Consistency) },
    problems: ["invalid-request", ...PROVING],
  },
  "POST /v1/logs/:log/visibility": {
    summary: "Let anyone read the log, or no longer",
    body: json(NewVisibility),
    success: written(VisibilityReceipt),
    problems: ["approval-required", ...WRITING],
  },
  "POST /v1/logs/:log/log_keys": {
    summary: "A key that a log is signed with from now on, or no longer",
    body: json(NewLogKey),
    success: written(LogKeyReceipt),
    problems: [
      "inadmissible-key",
      "key-not-held",
      "key-in-use",
      "key-has-ended",
      "last-log-key",
      "successor-unsealed",
      "approval-required",
      ...WRITING,
    ],
  },
  "GET /v1/logs/:log/log_keys": {
    summary: "The keys that a log is or was signed with, and those that could be next",
    success: { 200: json(LogKeyList) },
    problems: [],
  },
  "GET /v1/logs/:log/keys": {
    summary: "Enrolled keys",
    query: PageSearch,
    success: { 200: json(KeyPage) },
    problems: ["invalid-request"],
  },
  "GET /v1/logs/:log/conflicts": {
    summary: "Reports that contradict one that stands",
    query: PageSearch,
    success: { 200: json(ConflictPage) },
    problems: ["invalid-request"],
  },
  "GET /v1/logs/:log/holds": {
    summary: "Held reports",
    query: PageSearch,
    success: { 200: json(HoldPage) },
    problems: ["invalid-request"],
  },
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
  "GET /v1/usage": {
    summary: "What was used",
    query: UsageSearch,
    success: { 200: { ...json(Usage), "text/csv": UsageTable } },
    problems: ["invalid-request", "too-many"],
  },
  "GET /v1/jobs/:log/:id": {
    summary: "One build: its charge in full arithmetic, its report, its entry",
    query: JobSearch,
    success: { 200: json(Explanation) },
    problems: ["invalid-request", ...SERVING],
  },
};

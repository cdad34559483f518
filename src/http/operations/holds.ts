/** Reports that did not become usage, and their end. */
import { ConflictEnd, HoldEnd } from "../../flow/hold/resolve.ts";
import { ConflictPage, HoldPage } from "../answers/holds.ts";
import { Receipt } from "../answers/receipts.ts";
import { json, type Operation, WRITING } from "./operation.ts";
import { ResolvedSearch } from "./shapes.ts";

const ENDED = ["approval-required", "already-decided", ...WRITING] as const;

export const HOLDS = {
  "GET /v1/logs/:log/conflicts": {
    summary: "Reports that contradict one that stands, and how that ended",
    query: ResolvedSearch,
    success: { 200: json(ConflictPage) },
    problems: [],
  },
  "POST /v1/logs/:log/conflicts/:index/resolve": {
    summary: "Say which figures hold, where one person may",
    body: json(ConflictEnd),
    success: { 201: json(Receipt) },
    problems: ["correction-needed", ...ENDED],
  },
  "GET /v1/logs/:log/holds": {
    summary: "Held reports, and what became of them",
    query: ResolvedSearch,
    success: { 200: json(HoldPage) },
    problems: [],
  },
  "POST /v1/logs/:log/holds/:index/release": {
    summary: "Let a held report in, where one person may: its usage follows",
    body: json(HoldEnd),
    success: { 201: json(Receipt) },
    problems: ["cannot-be-rated", "job-stands", ...ENDED],
  },
  "POST /v1/logs/:log/holds/:index/reject": {
    summary: "Refuse a held report for good, where one person may",
    body: json(HoldEnd),
    success: { 201: json(Receipt) },
    problems: ENDED,
  },
} as const satisfies Readonly<Record<string, Operation>>;

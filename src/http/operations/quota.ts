/** What may start, what may go on, and what was said no to. */
import {
  Decisions,
  HEARTBEAT_PROBLEMS,
  Heartbeats,
  NeverRan,
  StopPage,
} from "../answers/quotas.ts";
import { jose, json, type Operation } from "./operation.ts";
import { HeartbeatBatch, NeverRanJobs, Questions, StopSearch } from "./shapes.ts";

export const QUOTA = {
  "POST /v1/heartbeats": {
    summary: "What runs, signed: one JWS, or up to 500; for each job whether it may go on",
    body: { ...json(HeartbeatBatch), ...jose },
    success: { 200: json(Heartbeats) },
    problems: [...HEARTBEAT_PROBLEMS, "too-many", "rate-limited"],
  },
  "POST /v1/decisions": {
    summary: "May these jobs start, may those go on",
    body: json(Questions),
    success: { 200: json(Decisions) },
    problems: ["too-many"],
  },
  "POST /v1/logs/:log/never_ran": {
    summary: "Jobs that never ran: what was kept for them is given back",
    body: json(NeverRanJobs),
    success: { 200: json(NeverRan) },
    problems: ["too-many"],
  },
  "GET /v1/quotas/:log/:namespace/stops": {
    summary: "What was said no to in 35 days, newest first, with what each was computed from",
    query: StopSearch,
    success: { 200: json(StopPage) },
    problems: [],
  },
} as const satisfies Readonly<Record<string, Operation>>;

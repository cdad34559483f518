/** A log as those see it who check it. */
import { Checkpoint, Checkpoints, Consistency, Inclusion, Tile } from "../answers/logs.ts";
import { json, type Operation, PROVING, SERVING, text } from "./operation.ts";
import { CheckpointSearch, ConsistencySearch, InclusionSearch } from "./shapes.ts";

export const LOG = {
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
    problems: [],
  },
  "GET /v1/logs/:log/proofs": {
    summary: "That an entry is in the log (C2SP tlog-proof)",
    query: InclusionSearch,
    success: { 200: text(Inclusion) },
    problems: [...PROVING],
  },
  "GET /v1/logs/:log/consistency": {
    summary: "That one tree goes on from another (RFC 9162 §2.1.4)",
    query: ConsistencySearch,
    success: { 200: json(Consistency) },
    problems: [...PROVING],
  },
} as const satisfies Readonly<Record<string, Operation>>;

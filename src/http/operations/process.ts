/** Whether the process lives, and what it can do. */
import { Document, Liveness, Metrics, Readiness } from "../answers/process.ts";
import { json, type Operation, text } from "./operation.ts";

export const PROCESS = {
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
} as const satisfies Readonly<Record<string, Operation>>;

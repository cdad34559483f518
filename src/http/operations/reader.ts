/** Usage, quota and single builds, read. */
import { NamespaceQuota } from "../answers/namespace-quotas.ts";
import { Explanation, Usage, UsageTable } from "../answers/usages.ts";
import { json, type Operation, SERVING } from "./operation.ts";
import { JobSearch, UsageSearch } from "./shapes.ts";

export const READER = {
  "GET /v1/quotas/:log/:namespace": {
    summary: "What a namespace has left, with all that it is made of",
    success: { 200: json(NamespaceQuota) },
    problems: [],
  },
  "GET /v1/usage": {
    summary: "What was used",
    query: UsageSearch,
    success: { 200: { ...json(Usage), "text/csv": UsageTable } },
    problems: ["too-many"],
  },
  "GET /v1/jobs/:log/:id": {
    summary: "One build: its charge in full arithmetic, its report, its entry",
    query: JobSearch,
    success: { 200: json(Explanation) },
    problems: [...SERVING],
  },
} as const satisfies Readonly<Record<string, Operation>>;

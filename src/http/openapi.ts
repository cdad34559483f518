/** OpenAPI 3.1 from the access table and the schemas that requests are checked with. */
import { z } from "zod";
import { PROBLEMS } from "../core/problem.ts";
import { NewCard } from "../flow/card.ts";
import { NewClass } from "../flow/classify.ts";
import { NewLog } from "../flow/create.ts";
import { NewLimit } from "../flow/limit.ts";
import { ACCESS, ROUTES, type Route } from "./access.ts";
import {
  JobSearch,
  KeyRotation,
  LogEnrolment,
  LogRevocation,
  PageSearch,
  Reports,
  TokenClaim,
  UsageSearch,
} from "./shapes.ts";

interface Operation {
  summary: string;
  /** Of an `application/json` body. */
  body?: z.ZodType;
  /** The body may be, or is, one compact JWS. */
  jose?: true;
  query?: z.ZodType;
  /** Statuses of success. */
  success: readonly number[];
  /** Besides `application/json`. */
  csv?: true;
}

const WRITTEN = [201, 200];

const OPERATIONS: Readonly<Record<Route, Operation>> = {
  "GET /livez": { summary: "The process answers", success: [200] },
  "GET /readyz": { summary: "Can reports be taken, and what to know besides", success: [200, 503] },
  "GET /openapi.json": { summary: "This document", success: [200] },
  "GET /metrics": { summary: "Figures for Prometheus, as text", success: [200] },
  "POST /v1/reports": {
    summary: "Signed reports: one JWS, or up to 500 with a result for each",
    body: Reports,
    jose: true,
    success: [200, 201, 202],
  },
  "POST /v1/attestations": {
    summary: "An agent's high-water marks, signed",
    jose: true,
    success: [201],
  },
  "POST /v1/enrolments": {
    summary: "Name runners; the answer holds the one-time token, once",
    body: LogEnrolment,
    success: [201],
  },
  "POST /v1/enrolments/claim": {
    summary: "Bring the key for an enrolment",
    body: TokenClaim,
    success: WRITTEN,
  },
  "POST /v1/keys/rotate": {
    summary: "Replace a key by its successor",
    body: KeyRotation,
    success: WRITTEN,
  },
  "POST /v1/keys/:kid/revoke": { summary: "End a key", body: LogRevocation, success: [201] },
  "POST /v1/logs": { summary: "Make the log of an instance", body: NewLog, success: [201] },
  "GET /v1/logs": { summary: "The logs that you may see", success: [200] },
  "GET /v1/logs/:log/keys": { summary: "Enrolled keys", query: PageSearch, success: [200] },
  "GET /v1/logs/:log/conflicts": {
    summary: "Reports that contradict one that stands",
    query: PageSearch,
    success: [200],
  },
  "GET /v1/logs/:log/holds": { summary: "Held reports", query: PageSearch, success: [200] },
  "POST /v1/logs/:log/rate_cards": {
    summary: "Factors from an instant on",
    body: NewCard,
    success: [201],
  },
  "POST /v1/logs/:log/project_classes": {
    summary: "A project's class from an instant on",
    body: NewClass,
    success: [201],
  },
  "POST /v1/logs/:log/quotas": {
    summary: "A namespace's limit from an instant on",
    body: NewLimit,
    success: [201],
  },
  "GET /v1/usage": { summary: "What was used", query: UsageSearch, success: [200], csv: true },
  "GET /v1/jobs/:log/:id": {
    summary: "One build: its charge in full arithmetic, its report, its entry",
    query: JobSearch,
    success: [200],
  },
};

export function openapiDocument(version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of ROUTES) {
    const [method = "", path = ""] = route.split(" ");
    const template = path.replaceAll(/:([a-z]+)/g, "{$1}");
    paths[template] = { ...paths[template], [method.toLowerCase()]: operationObject(route, path) };
  }
  return {
    openapi: "3.1.0",
    info: { title: "Minutebook", version, summary: "The system of record for CI compute usage" },
    paths,
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer", bearerFormat: "JWT" } },
      schemas: { Problem: PROBLEM },
    },
  };
}

const PROBLEM = {
  type: "object",
  description: "RFC 9457 problem details",
  required: ["type", "title", "status", "code"],
  properties: {
    type: { type: "string", format: "uri" },
    title: { type: "string" },
    status: { type: "integer" },
    code: { type: "string", enum: [...Object.keys(PROBLEMS), "internal"] },
  },
};

function operationObject(route: Route, path: string): object {
  const { summary, success, csv, query, ...request } = OPERATIONS[route];
  const audience = ACCESS[route];
  const isOpen = audience.some((who) => who === "runner" || who === "anyone");
  const parameters = [...pathParameters(path), ...queryParameters(query)];
  const content = requestContent(request);
  const answered = { "application/json": {}, ...(csv && { "text/csv": {} }) };
  const failed = {
    "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } },
  };
  return {
    summary,
    description: `For: ${audience.join(", ")}.`,
    ...(!isOpen && { security: [{ bearer: [] }] }),
    ...(parameters.length > 0 && { parameters }),
    ...(content && { requestBody: { required: true, content } }),
    responses: {
      ...Object.fromEntries(success.map((s) => [s, { description: "Answer", content: answered }])),
      default: { description: "Problem", content: failed },
    },
  };
}

function requestContent({ body, jose }: Pick<Operation, "body" | "jose">): object | undefined {
  if (body === undefined && jose === undefined) return undefined;
  return {
    ...(body && { "application/json": { schema: jsonSchema(body) } }),
    ...(jose && { "application/jose": { schema: { type: "string" } } }),
  };
}

function pathParameters(path: string): object[] {
  return [...path.matchAll(/:([a-z]+)/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
}

function queryParameters(query: z.ZodType | undefined): object[] {
  if (query === undefined) return [];
  const { properties = {}, required = [] } = jsonSchema(query);
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema,
  }));
}

/** As callers write it, before defaults and transformations. */
function jsonSchema(shape: z.ZodType): z.core.JSONSchema.BaseSchema {
  const { $schema: _, ...schema } = z.toJSONSchema(shape, { io: "input" });
  return schema;
}

/**
 * Who may ask what: the one table of routes and roles. A route that is not in it cannot be
 * registered, and a caller without one of its roles gets 404, exactly like a missing path: a
 * forbidden thing and a missing one look the same.
 */
import { ROLES, type Role } from "../flow/authenticate.ts";

/** `runner`: the signed statement in the body is the credential. `anyone`: nothing is asked. */
export type Audience = Role | "runner" | "anyone";

const READERS = ["operator", "finance", "approver", "auditor"] as const;

export const ACCESS = {
  "GET /livez": ["anyone"],
  "GET /readyz": ["anyone"],
  "GET /metrics": ["operator"],
  "GET /openapi.json": ["anyone"],

  "POST /v1/reports": ["runner"],
  "POST /v1/attestations": ["runner"],
  "POST /v1/enrolments/claim": ["runner"],
  "POST /v1/keys/rotate": ["runner"],

  "POST /v1/enrolments": ["provisioner", "operator"],
  "POST /v1/keys/:kid/revoke": ["operator"],
  "POST /v1/logs": ["operator"],
  "POST /v1/logs/:log/rate_cards": ["finance"],
  "POST /v1/logs/:log/project_classes": ["finance", "platform"],
  "POST /v1/logs/:log/quotas": ["finance", "platform"],

  "GET /v1/logs": ["provisioner", "platform", ...READERS],
  "GET /v1/logs/:log/keys": ["provisioner", "operator", "auditor"],
  "GET /v1/logs/:log/conflicts": READERS,
  "GET /v1/logs/:log/holds": READERS,
  "GET /v1/usage": ["viewer", ...READERS],
  "GET /v1/jobs/:log/:id": ["viewer", ...READERS],
} as const satisfies Record<string, readonly Audience[]>;

export type Route = keyof typeof ACCESS;

export const AUDIENCES: readonly Audience[] = [...ROLES, "runner", "anyone"];

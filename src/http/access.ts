/**
 * Who may ask what: the one table of routes and roles. A route that is not in it cannot be
 * registered, and a caller without one of its roles gets 404, exactly like a missing path: a
 * forbidden thing and a missing one look the same.
 */
import { Problem } from "../core/problem.ts";
import type { Principal, Role } from "../flow/authenticate.ts";

/** `runner`: the signed statement in the body is the credential. `anyone`: nothing is asked. */
export type Audience = Role | "runner" | "anyone";

const READERS = ["operator", "finance", "approver", "auditor"] as const;

/** No bearer token is asked for, and none is looked at. */
const OPEN = {
  "GET /livez": ["anyone"],
  "GET /readyz": ["anyone"],
  "GET /openapi.json": ["anyone"],

  "POST /v1/reports": ["runner"],
  "POST /v1/attestations": ["runner"],
  "POST /v1/enrolments/claim": ["runner"],
  "POST /v1/keys/rotate": ["runner"],
} as const satisfies Record<string, readonly ("runner" | "anyone")[]>;

const GUARDED = {
  "GET /metrics": ["operator"],

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
} as const satisfies Record<string, readonly Role[]>;

export type OpenRoute = keyof typeof OPEN;
export type GuardedRoute = keyof typeof GUARDED;
export type Route = OpenRoute | GuardedRoute;

export const ACCESS: Readonly<Record<Route, readonly Audience[]>> = { ...OPEN, ...GUARDED };

export const ROUTES = Object.keys(ACCESS) as Route[];

/** Who asks, with those of their grants that this route takes. */
export type Caller = Principal;

/** @throws Problem `not-found` for whoever has none of the route's roles */
export function admitCaller(route: GuardedRoute, { id, grants }: Principal): Caller {
  const roles: readonly Role[] = GUARDED[route];
  const held = grants.filter(({ role }) => roles.includes(role));
  if (held.length === 0) throw new Problem("not-found");
  return { id, grants: held };
}

export function seesLog({ grants }: Caller, log: string): boolean {
  return grants.some(({ logs }) => logs === "*" || logs.includes(log));
}

/** @throws Problem `not-found` for another tenant's log, whether or not there is one */
export function assertLog(caller: Caller, log: string): void {
  if (!seesLog(caller, log)) throw new Problem("not-found");
}

/** What nobody has yet, a new log, is for those who have all. */
export function assertAllLogs({ grants }: Caller): void {
  if (!grants.some(({ logs }) => logs === "*")) throw new Problem("not-found");
}

/**
 * The namespaces of a log that the caller may see; undefined: all of them.
 * @throws Problem `not-found` as `assertLog` does
 */
export function visibleNamespaces(caller: Caller, log: string): bigint[] | undefined {
  assertLog(caller, log);
  const seen = new Set<bigint>();
  for (const { logs, namespaces } of caller.grants) {
    if (logs !== "*" && !logs.includes(log)) continue;
    if (namespaces === "*") return undefined;
    for (const namespace of namespaces) seen.add(BigInt(namespace));
  }
  return [...seen];
}

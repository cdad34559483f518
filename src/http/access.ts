/**
 * Who may ask what: the one table of routes and roles. A route that is not in it cannot be
 * registered, and a caller without one of its roles gets 404, exactly like a missing path: a
 * forbidden thing and a missing one look the same.
 */
import { Problem } from "../core/problem.ts";
import { covers, type Principal, type Role } from "../flow/access/grant.ts";
import type { AccessLog } from "../flow/access/log.ts";

/**
 * `runner`: the signed statement in the body is the credential. `anyone`: nothing is asked. `public`:
 * anyone, where the log was made public.
 */
export type Audience = Role | "runner" | "anyone" | "public";

const READERS = ["operator", "finance", "approver", "auditor"] as const;
/** Who takes the month to the ledger, and who checks what was taken. */
const EXPORTERS = ["finance", "auditor"] as const;
const VERIFIERS = ["auditor", "witness", "viewer", "public"] as const;

/** No bearer token is asked for, and none is looked at. */
const OPEN = {
  "GET /livez": ["anyone"],
  "GET /readyz": ["anyone"],
  "GET /openapi.json": ["anyone"],

  "POST /v1/reports": ["runner"],
  "POST /v1/attestations": ["runner"],
  "POST /v1/enrolments/claim": ["runner"],
  "POST /v1/keys/rotate": ["runner"],
  "POST /v1/receipts/prove": ["runner"],
  "POST /v1/heartbeats": ["runner"],

  // Whoever sends the log's own secret.
  "POST /webhooks/gitlab/:log": ["anyone"],
} as const satisfies Record<string, readonly ("runner" | "anyone")[]>;

/** A log as those see it who check it. A token may be left out, and one that is sent is looked at. */
const PUBLISHED = {
  "GET /logs/:log/checkpoint": VERIFIERS,
  "GET /logs/:log/checkpoint/:size": VERIFIERS,
  "GET /logs/:log/tile/:path": VERIFIERS,
  "GET /v1/logs/:log/checkpoints": VERIFIERS,
  "GET /v1/logs/:log/consistency": VERIFIERS,
  "GET /v1/logs/:log/proofs": VERIFIERS,
} as const satisfies Record<string, readonly (Role | "public")[]>;

const GUARDED = {
  "GET /metrics": ["operator"],

  "POST /v1/enrolments": ["provisioner", "operator"],
  "POST /v1/keys/:kid/revoke": ["operator"],
  "POST /v1/logs": ["operator"],
  "POST /v1/logs/:log/visibility": ["operator"],
  "POST /v1/logs/:log/log_keys": ["operator"],
  "POST /v1/logs/:log/rate_cards": ["finance"],
  "POST /v1/logs/:log/project_classes": ["finance", "platform"],
  "PUT /v1/quotas/:log/:namespace": ["finance", "platform"],
  "POST /v1/packs": ["finance", "platform"],
  "PUT /v1/accounts/:log": ["platform"],
  "PUT /v1/accounts/:log/:namespace": ["platform"],
  "POST /v1/decisions": ["platform"],
  "POST /v1/logs/:log/never_ran": ["platform"],
  "GET /v1/quotas/:log/:namespace/stops": ["viewer", "platform", ...READERS],
  "GET /v1/quotas/:log/:namespace/notifications": ["viewer", "platform", ...READERS],

  "POST /v1/proposals": ["finance", "operator"],
  "GET /v1/proposals": READERS,
  "GET /v1/proposals/:log/:index": READERS,
  "POST /v1/proposals/:log/:index/approval": ["approver"],
  "POST /v1/proposals/:log/:index/refusal": ["approver"],
  "POST /v1/proposals/:log/:index/withdrawal": ["finance", "operator"],
  "POST /v1/logs/:log/source_counts": ["platform"],

  "GET /v1/months/:log": READERS,
  "GET /v1/months/:log/:month": READERS,
  "POST /v1/months/:log/:month/close": ["finance"],
  "POST /v1/months/:log/:month/withdraw": ["finance"],
  "POST /v1/months/:log/:month/finish": ["finance", "operator"],
  "GET /v1/months/:log/:month/statement": READERS,
  "GET /v1/months/:log/:month/statement.note": READERS,
  "GET /v1/months/:log/:month/statement.html": READERS,
  "GET /v1/months/:log/:month/allocations": READERS,
  "GET /v1/months/:log/:month/packs": READERS,
  "GET /v1/months/:log/:month/tieout": READERS,

  "POST /v1/exports": EXPORTERS,
  "GET /v1/exports": [...EXPORTERS, "portal"],
  "GET /v1/exports/:log/:export": [...EXPORTERS, "portal"],
  "GET /v1/exports/:log/:export/manifest": [...EXPORTERS, "portal"],
  "GET /v1/exports/:log/:export/manifest.note": [...EXPORTERS, "portal"],
  "GET /v1/exports/:log/:export/file": [...EXPORTERS, "portal"],

  "PUT /v1/names/:log": ["platform"],
  "DELETE /v1/names/:log/:kind/:id": ["platform", "operator"],

  "GET /v1/feed": [...EXPORTERS, "portal"],
  "POST /v1/feed/ack": ["portal"],

  "POST /v1/logs/:log/namespace_lists": ["finance"],
  "POST /v1/logs/:log/credit_previews": ["finance"],
  "POST /v1/logs/:log/credit_runs": ["finance"],
  "GET /v1/logs/:log/credit_runs": READERS,
  "GET /v1/logs/:log/credit_runs/:index": READERS,
  "POST /v1/logs/:log/credit_runs/:index/apply": ["finance"],
  "POST /v1/logs/:log/credit_runs/:index/reverse": ["finance"],
  "POST /v1/logs/:log/what_if": ["finance"],

  "POST /v1/logs/:log/platform_jobs": ["platform"],
  "GET /v1/logs/:log/breaks": READERS,
  "POST /v1/logs/:log/breaks/:index/owner": ["finance", "operator"],
  "GET /v1/logs/:log/completeness": READERS,
  "GET /v1/logs/:log/awaiting": ["viewer", "platform", ...READERS],

  "GET /v1/logs": ["provisioner", "platform", ...READERS],
  "GET /v1/logs/:log/keys": ["provisioner", "operator", "auditor"],
  "GET /v1/logs/:log/log_keys": ["operator", "auditor"],
  "GET /v1/logs/:log/conflicts": READERS,
  "POST /v1/logs/:log/conflicts/:index/resolve": ["finance"],
  "GET /v1/logs/:log/holds": READERS,
  "POST /v1/logs/:log/holds/:index/release": ["finance"],
  "POST /v1/logs/:log/holds/:index/reject": ["finance"],
  "GET /v1/quotas/:log/:namespace": ["viewer", "platform", ...READERS],
  "GET /v1/usage": ["viewer", ...READERS],
  "GET /v1/gitlab/ci_minutes_usage": ["viewer", ...READERS],
  "GET /v1/gitlab/ci_dedicated_hosted_runner_usage": READERS,
  "GET /v1/jobs/:log/:id": ["viewer", ...READERS],

  "GET /v1/access/:log": ["operator", "auditor"],
  "GET /v1/principals": ["operator", "auditor"],
  "POST /v1/principals/:id/bar": ["operator"],
  "POST /v1/principals/:id/unbar": ["operator"],
  "POST /v1/logs/:log/access_reviews": ["operator"],
} as const satisfies Record<string, readonly Role[]>;

export type OpenRoute = keyof typeof OPEN;
export type PublishedRoute = keyof typeof PUBLISHED;
export type GuardedRoute = keyof typeof GUARDED;
export type Route = OpenRoute | PublishedRoute | GuardedRoute;

export const ACCESS: Readonly<Record<Route, readonly Audience[]>> = {
  ...OPEN,
  ...PUBLISHED,
  ...GUARDED,
};

export const ROUTES = Object.keys(ACCESS) as Route[];

/** Who asks, with those of their grants that this route takes. */
export interface Caller extends Principal {
  /** All of their grants. */
  readonly held: Principal["grants"];
  /** The log that the request turned out to be about, for the access log: empty while it is none. */
  readonly about: { log: string };
  /** With which roles they ever used a log. */
  readonly rolesEver: (log: string) => Promise<readonly string[]>;
}

/** @throws Problem `not-found` for whoever has none of the route's roles */
export function assertRole({ grants }: Caller): void {
  if (grants.length === 0) throw new Problem("not-found");
}

/** Also of whoever has none: a public log is read without any. */
export function callerOf(
  route: Route,
  principal: Principal,
  accesses: Pick<AccessLog, "rolesEver">,
): Caller {
  const { id, grants: held } = principal;
  const grants = held.filter(({ role }) => ACCESS[route].includes(role));
  const rolesEver: Caller["rolesEver"] = (log) => accesses.rolesEver(log, id);
  return { ...principal, grants, held, about: { log: "" }, rolesEver };
}

export function seesLog({ grants }: Caller, log: string): boolean {
  return grants.some((grant) => covers(grant, log));
}

/**
 * Only whose log it is leaves a row in its access log: anybody may name any.
 *
 * @throws Problem `not-found` for another tenant's log, whether or not there is one
 */
export function assertLog(caller: Caller, log: string): void {
  if (!seesLog(caller, log)) throw new Problem("not-found");
  caller.about.log = log;
}

/** Under two persons nobody is a system who has a say in money as a person, too. */
const PERSONAL: readonly string[] = ["finance", "approver", "operator"] satisfies Role[];

/**
 * Whether who asks decides on the log as a person, in whichever role they ask now, or ever did: an issuer may
 * give one subject a token that says less than another.
 */
export async function isPerson({ held, rolesEver }: Caller, log: string): Promise<boolean> {
  const now = held.filter((grant) => covers(grant, log)).map(({ role }) => role);
  const isPersonal = (role: string): boolean => PERSONAL.includes(role);
  return now.some(isPersonal) || (await rolesEver(log)).some(isPersonal);
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
  for (const grant of caller.grants) {
    if (!covers(grant, log)) continue;
    const { namespaces } = grant;
    if (namespaces === "*") return undefined;
    for (const namespace of namespaces) seen.add(BigInt(namespace));
  }
  return [...seen];
}

/** What the database is to show somebody who is a viewer and nothing else; undefined for all others. */
export function viewerOf(
  caller: Caller,
  log: string,
): { log: string; namespaces: "*" | readonly bigint[] } | undefined {
  const held = caller.grants.filter((grant) => covers(grant, log));
  if (held.some(({ role }) => role !== "viewer")) return undefined;
  return { log, namespaces: visibleNamespaces(caller, log) ?? "*" };
}

/** @throws Problem `not-found` for another tenant's namespace, whether or not there is one */
export function assertNamespace(caller: Caller, log: string, namespace: string): void {
  if (visibleNamespaces(caller, log)?.includes(BigInt(namespace)) === false) {
    throw new Problem("not-found");
  }
}

/** What somebody may read of a log as it is archived: all of it, or no more than hashes. */
export type Reach = "entries" | "hashes";

/**
 * Entries are for auditors and for the tenant whose log it is; who sees some namespaces of it, or only
 * witnesses that it grows, is shown what proves it. What is public is everybody's.
 *
 * @throws Problem `not-found` as `assertLog` does
 */
export function reachOf(caller: Caller, log: string, isPublic: boolean): Reach {
  if (isPublic) {
    caller.about.log = log;
    return "entries";
  }
  assertLog(caller, log);
  const whole = caller.grants.some((grant) => {
    return grant.role !== "witness" && grant.namespaces === "*" && covers(grant, log);
  });
  return whole ? "entries" : "hashes";
}

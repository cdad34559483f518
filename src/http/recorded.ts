/** What of a request goes into the access log, and which requests do. */
import { randomUUID } from "node:crypto";
import { LogId } from "../core/unit.ts";
import { covers, type Holding, type Principal } from "../flow/access/grant.ts";
import type { AccessLog } from "../flow/access/log.ts";
import type { Caller, GuardedRoute, PublishedRoute, Route } from "./access.ts";
import { codeOf } from "./problem.ts";
import type { Ask } from "./router.ts";

/** Asked all day: what is answered are figures of the process, or of a namespace before they are anybody's bill. */
const UNRECORDED: readonly Route[] = ["GET /metrics", "POST /v1/decisions"];

/** A platform that asks for each job of each pipeline. */
export function isOfMachines(route: GuardedRoute): boolean {
  return route === "POST /v1/decisions";
}

/** Of a log as it is published only bundles of entries are anybody's data: all the rest is hashes. */
export function isRecorded(route: GuardedRoute | PublishedRoute, { param }: Ask): boolean {
  if (route === "GET /logs/:log/tile/:path") return param("path").startsWith("entries/");
  return !UNRECORDED.includes(route) && !HASHES.includes(route);
}

const HASHES: readonly Route[] = [
  "GET /logs/:log/checkpoint",
  "GET /logs/:log/checkpoint/:size",
  "GET /v1/logs/:log/checkpoints",
  "GET /v1/logs/:log/consistency",
  "GET /v1/logs/:log/proofs",
];

type Row = Parameters<AccessLog["record"]>[0];
type Use = NonNullable<Parameters<AccessLog["record"]>[1]>;

/** A path is at most so long in the access log. */
const TARGET_CHARS_MAX = 512;

export function rowOf(
  route: Route,
  { incoming, param }: Ask,
  caller: Caller,
  response: Response,
): Row {
  const named = LogId.safeParse(param("log")).data ?? "";
  // What was refused before its log was looked at is of the log, if it is the caller's at all.
  const isTheirs = caller.held.some((grant) => covers(grant, named));
  const log = caller.about.log || (isTheirs ? named : "");
  const [path = ""] = (incoming.url ?? "").split("?");
  return {
    log,
    by: caller.id,
    roles: rolesOn(caller.grants, log),
    method: incoming.method ?? "",
    route: route.slice(route.indexOf(" ") + 1),
    target: path.slice(0, TARGET_CHARS_MAX),
    status: response.status,
    code: codeOf(response),
    request: randomUUID(),
  };
}

/** Undefined for who holds nothing there: they have not used it. */
export function useOf({ grants, id, issuer, subject }: Principal, log: string): Use | undefined {
  const roles = rolesOn(grants, log);
  return roles === "" ? undefined : { log, id, issuer, subject, roles };
}

/** With commas between, in one order; about no log: on any. */
function rolesOn(grants: readonly Holding[], log: string): string {
  const held = grants.filter((grant) => log === "" || covers(grant, log));
  return [...new Set(held.map(({ role }) => role))].sort().join(",");
}

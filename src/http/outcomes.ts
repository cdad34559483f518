/** All that a route can answer: its own successes and problems, and those that routes have in common. */
import { ACCESS, type Audience, type Route } from "./access.ts";
import { type AnyCode, problemOf, statusOf } from "./answers/problem.ts";
import type { Content } from "./operations/operation.ts";
import { OPERATIONS } from "./operations.ts";

const NO_ROLES: readonly Audience[] = ["runner", "anyone", "public"];

/** A route that has no roles asks for no token. */
export function rolesOf(route: Route): readonly Audience[] {
  return ACCESS[route].filter((audience) => !NO_ROLES.includes(audience));
}

/** `busy`: what a token asks for is read from a database, which may be away. */
const OF_TOKENS = [
  "unauthenticated",
  "not-found",
  "rate-limited",
  "issuer-unavailable",
  "busy",
] as const;
const OF_BODIES = ["unsupported-media-type", "too-large", "body-too-slow", "busy"] as const;
/** `invalid-request`: a member of the query that the route does not have, or one that comes twice. */
const OF_ALL = ["invalid-request", "internal"] as const;

/** The codes of each status that a route can answer with a problem document, statuses ascending. */
export function problemsOf(route: Route): ReadonlyMap<number, readonly AnyCode[]> {
  const { body, problems } = OPERATIONS[route];
  const codes: AnyCode[] = [
    ...(rolesOf(route).length > 0 ? OF_TOKENS : []),
    ...(body ? OF_BODIES : []),
    ...problems,
    ...OF_ALL,
  ];
  const statuses = [...new Set(codes.map(statusOf))].sort((a, b) => a - b);
  return new Map(
    statuses.map((status) => [
      status,
      [...new Set(codes.filter((code) => statusOf(code) === status))],
    ]),
  );
}

/** All that a route can answer, by status. A status is of success or of problems, never of both. */
export function answersOf(route: Route): ReadonlyMap<number, Content> {
  const success = Object.entries(OPERATIONS[route].success);
  const problems = Array.from(problemsOf(route), ([status, codes]) => {
    return [status, { "application/problem+json": problemOf(status, codes) }] as const;
  });
  return new Map([
    ...success.map(([status, content]) => [Number(status), content] as const),
    ...problems,
  ]);
}

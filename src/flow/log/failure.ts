/** What a failed query or transaction means for whoever waits for it. */
import { Problem } from "../../core/problem.ts";

/**
 * - `data`: PostgreSQL cannot store a value of some row; without that row the batch would do.
 * - `later`: nothing is wrong with the batch: connection lost, server going down, a lock or a
 *   statement that took too long, serialization, disk full.
 * - `broken`: an invariant, or our own code. Never to be retried blindly.
 */
export type Failure = "data" | "later" | "broken";

/** Classes of SQLSTATE (the first two characters), from PostgreSQL's appendix A. */
const CLASSES: Readonly<Record<string, Failure>> = {
  "08": "later", // connection
  "22": "data", // data exception
  "25": "later", // transaction state: the server ended a transaction that idled too long
  "40": "later", // rollback: serialization, deadlock
  "53": "later", // insufficient resources: disk, memory, connections
  "55": "later", // object state: a lock that was not to be had in time
  "57": "later", // operator intervention: shutdown, a cancelled statement
  "58": "later", // the system below PostgreSQL
};

/** Of class 23 the two that one row's data can break; a broken unique key is a broken invariant. */
const CHECK_VIOLATION = "23514";
const NOT_NULL_VIOLATION = "23502";

/** From postgres.js (`CONNECTION_CLOSED` and the like), and from node:net and node:dns. */
const NO_CONNECTION =
  /^(?:CONNECT|ECONN|EAI_|(?:EPIPE|ETIMEDOUT|E(?:HOST|NET)(?:DOWN|UNREACH)|ENOENT|ENOTFOUND)$)/;

export function failureOf(error: unknown): Failure {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (NO_CONNECTION.test(code)) return "later";
  if (code === CHECK_VIOLATION || code === NOT_NULL_VIOLATION) return "data";
  return (code.length === 5 && CLASSES[code.slice(0, 2)]) || "broken";
}

/** What is nobody's fault is `busy`. That holds for a lost COMMIT too: repetition is safe. */
export function spoken(error: unknown): unknown {
  if (failureOf(error) !== "later") return error;
  const problem = new Problem("busy");
  problem.cause = error;
  return problem;
}

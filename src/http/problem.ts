/** RFC 9457 problem documents. Nothing from inside leaves: an unexpected error is a bare 500. */
import { randomUUID } from "node:crypto";
import { PROBLEMS, Problem, type ProblemCode } from "../core/problem.ts";

const TYPE_BASE = "https://minutebook.example/problems/";
const RETRY_AFTER_SECONDS = "1";

export interface ProblemDocument {
  type: string;
  title: string;
  status: number;
  code: string;
  [member: string]: unknown;
}

export function problemDocument(
  code: ProblemCode,
  members: Readonly<Record<string, unknown>> = {},
): ProblemDocument {
  const [status, title] = PROBLEMS[code];
  return { ...members, type: TYPE_BASE + code, title, status, code };
}

/**
 * A Problem is told; of anything else the caller sees an id, and `log` gets the error with that id. So it does of
 * a Problem that is ours.
 */
export function errorResponse(error: unknown, log: (error: unknown, id: string) => void): Response {
  const id = randomUUID();
  if (error instanceof Problem) {
    const isOurs = error.status === 500;
    if (isOurs) log(error.cause ?? error, id);
    return respond(problemDocument(error.code, { ...error.extension, ...(isOurs && { id }) }));
  }
  log(error, id);
  return respond({
    type: `${TYPE_BASE}internal`,
    title: "Something broke here; the id finds it in the service's log",
    status: 500,
    code: "internal",
    id,
  });
}

/**
 * Statuses that ask to come again say when (RFC 9110 §10.2.3), and 401 says with what (§11.6.1). After
 * 408 nothing more of the request is waited for (§15.5.9).
 */
export function respond(
  document: ProblemDocument,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const response = new Response(JSON.stringify(document), {
    status: document.status,
    headers: {
      "content-type": "application/problem+json",
      "cache-control": "no-store",
      ...(document.status === 408 && { connection: "close" }),
      ...(document.status === 503 && { "retry-after": RETRY_AFTER_SECONDS }),
      ...(document.status === 429 && { "retry-after": String(document["retry_after_s"]) }),
      ...(document.status === 401 && { "www-authenticate": "Bearer" }),
      ...headers,
    },
  });
  CODES.set(response, document.code);
  return response;
}

/** What is written down of a refusal (http/recorded.ts), whose body is a stream by then. */
const CODES = new WeakMap<Response, string>();

/** The code of an answer that is a problem. */
export function codeOf(response: Response): string | undefined {
  return CODES.get(response);
}

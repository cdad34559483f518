/** A client of the service's own HTTP surface: commands go through the one door like everybody else. */
import { CommandError } from "./failure.ts";

export interface Api {
  readonly server: string;
  readonly token: string;
}

/** What the service answered when it was not what was asked for; `code` is one of core/problem. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, detail: string) {
    super(detail === "" ? code : `${code}: ${detail}`);
    this.status = status;
    this.code = code;
  }
}

type Method = "GET" | "POST" | "PUT";

/**
 * One JSON request with the bearer token.
 * @throws ApiError for any answer outside 2xx, CommandError `unreachable` or `unexpected-answer`
 */
export async function call<T>(api: Api, method: Method, path: string, body?: unknown): Promise<T> {
  const text = await ask(api, method, path, { accept: "application/json", body });
  try {
    return JSON.parse(text) as T;
  } catch (error) {
    throw new CommandError("unexpected-answer", `${api.server} did not answer in JSON`, {
      cause: error,
    });
  }
}

/** The body of the answer as it came; throws as `call` does. */
export async function ask(
  api: Api,
  method: Method,
  path: string,
  asked: { accept: string; body?: unknown },
): Promise<string> {
  return await (await open(api, method, path, asked)).text();
}

/** The answer as its head is there, and its body is still to come; throws as `call` does. */
export async function open(
  { server, token }: Api,
  method: Method,
  path: string,
  { accept, body, headers: more }: Asked,
): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, accept, ...more };
  const request =
    body === undefined
      ? { method, headers }
      : {
          method,
          headers: { ...headers, "content-type": "application/json" },
          body: JSON.stringify(body),
        };
  const response = await fetch(new URL(path, server), request).catch((error: unknown) => {
    throw new CommandError("unreachable", `${server}${reasonOf(error)}`, { cause: error });
  });
  if (response.ok) return response;
  throw problemOf(response.status, await response.text());
}

interface Asked {
  accept: string;
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
}

/** fetch says only that it failed; its cause knows why. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && "code" in cause ? ` (${cause.code})` : "";
}

/** The title, and besides it the members that say what exactly (RFC 9457 §3.2). */
function problemOf(status: number, text: string): ApiError {
  try {
    const { code, title, type: _, status: __, ...members } = JSON.parse(text) as ProblemMembers;
    const details = Object.entries(members).map(([name, value]) => `${name} ${String(value)}`);
    const detail = details.length === 0 ? title : `${title} (${details.join("; ")})`;
    return new ApiError(status, String(code ?? status), String(detail ?? ""));
  } catch {
    return new ApiError(status, String(status), text.slice(0, 200));
  }
}

type ProblemMembers = Record<"code" | "title" | "type" | "status", unknown> &
  Record<string, unknown>;

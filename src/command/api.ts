/** A client of the service's own HTTP surface: commands go through the one door like everybody else. */

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

/**
 * One JSON request with the bearer token.
 * @throws ApiError for any answer outside 2xx
 */
export async function call<T>(
  api: Api,
  method: "GET" | "POST" | "PUT",
  path: string,
  body?: unknown,
): Promise<T> {
  const response = await fetch(new URL(path, api.server), {
    method,
    headers: {
      authorization: `Bearer ${api.token}`,
      accept: "application/json",
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (response.ok) return JSON.parse(text) as T;
  throw problemOf(response.status, text);
}

function problemOf(status: number, text: string): ApiError {
  try {
    const { code, detail, title } = JSON.parse(text) as Record<string, unknown>;
    return new ApiError(status, String(code ?? status), String(detail ?? title ?? ""));
  } catch {
    return new ApiError(status, String(status), text.slice(0, 200));
  }
}

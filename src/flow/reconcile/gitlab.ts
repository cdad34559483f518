/** One request to GitLab's API, and what its answer asks of the next one. */

/** An installation that is asked for the jobs of a log's runners. */
export interface GitLab {
  log: string;
  /** Of the installation, without `/api/v4`. */
  url: string;
  /** Of somebody who may read its runners and all jobs of theirs: an administrator or an auditor. */
  token: string;
}

interface GitLabAnswer {
  text: string;
  /** Path and query of the next page; absent on the last. */
  next?: string;
  /** How long to leave it alone. */
  restMs: number;
}

/**
 * No answer to what was asked. `reason` is the HTTP status, or one of `redirect`, `unreachable`, `timeout`,
 * `too-large`, `unreadable`; nothing of what was said besides.
 */
export class GitLabError extends Error {
  override readonly name = "GitLabError";
  readonly reason: string;
  /** How long it asks to be left alone; 0 where it does not say. */
  readonly restMs: number;

  constructor(reason: string, { restMs = 0, cause }: { restMs?: number; cause?: unknown } = {}) {
    super(`GitLab did not answer: ${reason}`, { cause });
    this.reason = reason;
    this.restMs = restMs;
  }

  /** What was asked for is not there: of a page, a cursor that has run out. */
  get missing(): boolean {
    return this.reason === "404" || this.reason === "400";
  }
}

const TIMEOUT_MS = 60_000;
/** A hundred jobs are some 300 KB; commit messages are in them, of any length. */
const BYTES_MAX = 32 * 1024 * 1024;
const REST_MS_MAX = 3_600_000;
const SECONDS = /^[0-9]{1,12}$/;

interface GitLabRequest {
  /** Path and query, from `/api/v4/` on. */
  path: string;
  /** Epoch milliseconds. */
  now: number;
  signal: AbortSignal;
  timeoutMs?: number | undefined;
}

/** @throws GitLabError; the signal's reason when that ends it */
export async function askGitLab(
  { token, url }: GitLab,
  { now, path, signal, timeoutMs = TIMEOUT_MS }: GitLabRequest,
): Promise<GitLabAnswer> {
  const late = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(url + path, {
      headers: { "private-token": token, accept: "application/json" },
      // Whoever may redirect us would be given the token.
      redirect: "manual",
      signal: AbortSignal.any([signal, late]),
    });
    const { headers, status } = response;
    if (!response.ok) {
      await response.body?.cancel();
      const reason = status >= 300 && status < 400 ? "redirect" : String(status);
      throw new GitLabError(reason, { restMs: restOf(headers, now, true) });
    }
    const text = await readBounded(response);
    const next = nextOf(headers.get("link") ?? "", url);
    return { text, restMs: restOf(headers, now, false), ...(next !== undefined && { next }) };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof GitLabError) throw error;
    // What fetch says itself may hold the URL; what the network said is its cause.
    const cause = error instanceof Error ? error.cause : undefined;
    throw new GitLabError(late.aborted ? "timeout" : "unreachable", { cause });
  }
}

async function readBounded({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > BYTES_MAX) throw new GitLabError("too-large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** RFC 8288. A page that is elsewhere is none of ours: the token would go there. */
function nextOf(link: string, url: string): string | undefined {
  for (const part of link.split(/,\s*(?=<)/)) {
    const [, target, parameters = ""] = /^\s*<([^>]*)>(.*)$/.exec(part) ?? [];
    if (target === undefined || !/;\s*rel="?next"?\s*(?:;|$)/.test(parameters)) continue;
    if (!target.startsWith(`${url}/api/v4/`)) throw new GitLabError("redirect");
    return target.slice(url.length);
  }
  return undefined;
}

/**
 * Seconds or a date in `Retry-After` (RFC 9110 §10.2.3), else `RateLimit-Reset`, epoch seconds, where nothing
 * remains of the budget.
 */
function restOf(headers: Headers, now: number, refused: boolean): number {
  const asked = headers.get("retry-after");
  const reset = headers.get("ratelimit-reset") ?? "";
  const used = headers.get("ratelimit-remaining") === "0";
  let ms = 0;
  if (asked !== null) ms = SECONDS.test(asked) ? Number(asked) * 1_000 : Date.parse(asked) - now;
  else if ((used || refused) && SECONDS.test(reset)) ms = Number(reset) * 1_000 - now;
  return ms > 0 ? Math.min(ms, REST_MS_MAX) : 0;
}

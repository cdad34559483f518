/** One GET, bounded in bytes and in time, and asked again where the server may only be busy. */
import { concat } from "../../src/core/text.ts";
import { CannotLook } from "../finding.ts";

/**
 * The body, of one that is longer than `bytesMax` a byte more than that; undefined where the server
 * has none (404, 410). Throws `CannotLook` on every other answer, and where none comes.
 */
export type Ask = (url: string, bytesMax: number) => Promise<Uint8Array | undefined>;

export interface AskOptions {
  /** A bearer token. */
  token?: string | undefined;
  /** From the question to the last byte. */
  timeoutMs?: number;
  /** Waits between tries. */
  pause?(ms: number): Promise<void>;
}

const TRIES = 5;
const TIMEOUT_MS = 60_000;
const PAUSE_MS = 250;
const PAUSE_MS_MAX = 30_000;

/** Either an answer, or a reason to ask again, and after what time the server would have it. */
type Answer = { body: Uint8Array | undefined } | { trouble: string; afterMs?: number };

export function asker({ token, timeoutMs = TIMEOUT_MS, pause = sleep }: AskOptions): Ask {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return async (url, bytesMax) => {
    for (let tries = 1; ; tries += 1) {
      const answer = await once(url, bytesMax, { headers, timeoutMs });
      if ("body" in answer) return answer.body;
      if (tries === TRIES) throw new CannotLook(`${url}: ${answer.trouble}, ${tries} times`);
      await pause(Math.min(answer.afterMs ?? PAUSE_MS * 2 ** tries, PAUSE_MS_MAX));
    }
  };
}

async function once(
  url: string,
  bytesMax: number,
  { headers, timeoutMs }: { headers: Record<string, string>; timeoutMs: number },
): Promise<Answer> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    // Another address would be another server, which nobody has named.
    const response = await fetch(url, { headers, redirect: "manual", signal });
    if (response.status === 200) return { body: await bodyOf(response, url, bytesMax) };
    await response.body?.cancel();
    return refusal(url, response);
  } catch (error) {
    if (error instanceof CannotLook) throw error;
    return { trouble: troubleOf(error) }; // no connection, a body cut short, or out of time
  }
}

function refusal(url: string, { headers, status }: Response): Answer {
  if (status === 404 || status === 410) return { body: undefined };
  if (status !== 429 && status < 500) throw new CannotLook(`${url}: the server answers ${status}`);
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  const trouble = `the server answers ${status}`;
  return Number.isNaN(seconds) ? { trouble } : { trouble, afterMs: seconds * 1000 };
}

async function bodyOf(response: Response, url: string, bytesMax: number): Promise<Uint8Array> {
  // A sign-in page is no answer: taken for one, it would accuse the log.
  if (response.headers.get("content-type")?.startsWith("text/html")) {
    throw new CannotLook(`${url}: the server answers with a page`);
  }
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = response.body?.getReader();
  while (reader !== undefined && length <= bytesMax) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    length += value.length;
  }
  await reader?.cancel();
  return concat(...parts).subarray(0, bytesMax + 1);
}

function troubleOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  return code === "" ? String(error) : code;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

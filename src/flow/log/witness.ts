/** One request to a witness (C2SP tlog-witness add-checkpoint), and what its answer means. */
import { parseSize } from "../../core/checkpoint.ts";
import { decodeUtf8 } from "../../core/text.ts";

/** `size`: what the witness says that it has cosigned last. `body`: not looked at yet. */
export type WitnessAnswer = { kind: "taken"; body: string } | { kind: "size"; size: bigint };

/**
 * A checkpoint that a witness did not cosign. `reason` is the HTTP status, or one of `conflict`,
 * `redirect`, `too-long`, `malformed`, `unreachable`, `timeout`, and what submit.ts adds.
 */
export class WitnessError extends Error {
  override readonly name = "WitnessError";
  readonly reason: string;
  /** The witness itself is away or busy: no other log is worth a try now. */
  readonly away: boolean;
  /** How long it asks to be left alone. */
  readonly retryAfterMs: number;

  constructor(
    reason: string,
    message: string,
    more: { away?: boolean; retryAfterMs?: number; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.reason = reason;
    this.away = more.away ?? false;
    this.retryAfterMs = more.retryAfterMs ?? 0;
  }
}

/** Some servers take no more than this of ours; we take no more of theirs. */
const ANSWER_BYTES_MAX = 16_384;
const TIMEOUT_MS = 10_000;
const RETRY_AFTER_MS_MAX = 3_600_000;
const SECONDS = /^[0-9]{1,9}$/;

export interface WitnessRequest {
  /** The submission prefix, without `/add-checkpoint`. */
  url: string;
  body: string;
  /** Ends the request, which then rejects with its reason. */
  signal: AbortSignal;
  /** For the whole of the answer; 10 s if not said. */
  timeoutMs?: number | undefined;
}

/** @throws WitnessError for every answer but a 200 and a 409 with a size, and for none */
export async function addCheckpoint(request: WitnessRequest): Promise<WitnessAnswer> {
  const { url, body, signal, timeoutMs = TIMEOUT_MS } = request;
  const ending = new AbortController();
  const end = (): void => ending.abort();
  const timer = setTimeout(end, timeoutMs);
  signal.addEventListener("abort", end);
  try {
    signal.throwIfAborted();
    const response = await fetch(`${url.replace(/\/$/, "")}/add-checkpoint`, {
      method: "POST",
      headers: { "content-type": "text/plain; charset=utf-8" },
      body,
      // Whoever may redirect us would choose who learns of our checkpoints.
      redirect: "manual",
      signal: ending.signal,
    });
    return answerOf(response, await readText(response));
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof WitnessError) throw error;
    const reason = ending.signal.aborted ? "timeout" : "unreachable";
    throw new WitnessError(reason, `no answer: ${reason}`, { away: true, cause: error });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
  }
}

/** Reads no further than an answer may be long. */
async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    // Leaving the loop cancels what is still to come.
    if (length > ANSWER_BYTES_MAX) throw new WitnessError("too-long", "its answer has no end");
    chunks.push(chunk);
  }
  const text = decodeUtf8(new Uint8Array(Buffer.concat(chunks)));
  if (text === undefined) throw new WitnessError("malformed", "its answer is no text");
  return text;
}

function answerOf({ status, headers }: Response, body: string): WitnessAnswer {
  if (status === 200) return { kind: "taken", body };
  if (status === 409) {
    const typed = headers.get("content-type")?.startsWith("text/x.tlog.size") ?? false;
    if (typed) {
      const size = body.endsWith("\n") ? parseSize(body.slice(0, -1)) : undefined;
      if (size === undefined) throw new WitnessError("malformed", "its size is none");
      return { kind: "size", size };
    }
    // What transparency-dev's witness answers to another root of a size that it has cosigned.
    throw new WitnessError("conflict", "it has cosigned another tree of this size, or says so");
  }
  if (status >= 300 && status < 400) throw new WitnessError("redirect", "it points elsewhere");
  const away = status === 429 || status >= 500;
  const asked = headers.get("retry-after") ?? "";
  const seconds = SECONDS.test(asked) ? Number(asked) : 0;
  throw new WitnessError(String(status), `it answered ${status}`, {
    away,
    retryAfterMs: Math.min(seconds * 1_000, RETRY_AFTER_MS_MAX),
  });
}

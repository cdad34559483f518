/** One signed request to a receiver of notifications (Standard Webhooks 1.0.0), and what its answer means. */
import { createHmac } from "node:crypto";

export interface Webhook {
  url: string;
  /** The current one, and behind it the former while receivers still verify by that. */
  secrets: readonly Uint8Array[];
}

/**
 * A notification that was not taken. `reason` is the HTTP status, or one of `redirect`, `unreachable`,
 * `timeout`; nothing of what the receiver said besides.
 */
export class WebhookError extends Error {
  override readonly name = "WebhookError";
  readonly reason: string;
  /** The receiver itself is away or busy: nothing else is worth a try now. */
  readonly away: boolean;
  /** How long it asks to be left alone. */
  readonly retryAfterMs: number;

  constructor(
    reason: string,
    more: { away?: boolean; retryAfterMs?: number; cause?: unknown } = {},
  ) {
    super(`the receiver of notifications did not take one: ${reason}`, { cause: more.cause });
    this.reason = reason;
    this.away = more.away ?? false;
    this.retryAfterMs = more.retryAfterMs ?? 0;
  }

  /** It wants nothing more, ever ("Delivery success and failure"). */
  get gone(): boolean {
    return this.reason === "410";
  }
}

/** The standard asks for 15 to 30 s. */
export const TIMEOUT_MS = 20_000;
const RETRY_AFTER_MS_MAX = 3_600_000;
const SECONDS = /^[0-9]{1,9}$/;
/** What says that the next one would fare no better. */
const AWAY = [429, 502, 503, 504];

export interface WebhookRequest {
  webhook: Webhook;
  /** Of the event, and the same in every attempt. */
  id: string;
  body: string;
  /** Of the attempt, epoch milliseconds. */
  now: number;
  /** Ends the request, which then rejects with its reason. */
  signal: AbortSignal;
  timeoutMs?: number | undefined;
}

/** Resolves on any 2xx. @throws WebhookError */
export async function post(request: WebhookRequest): Promise<void> {
  const { webhook, id, body, now, signal, timeoutMs = TIMEOUT_MS } = request;
  const timestamp = String(Math.floor(now / 1_000));
  const ending = new AbortController();
  const end = (): void => ending.abort();
  const timer = setTimeout(end, timeoutMs);
  signal.addEventListener("abort", end);
  try {
    signal.throwIfAborted();
    const response = await fetch(webhook.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": timestamp,
        "webhook-signature": signatures(webhook.secrets, `${id}.${timestamp}.${body}`),
      },
      body,
      // Whoever may redirect us would choose who learns of a customer's figures.
      redirect: "manual",
      signal: ending.signal,
    });
    // The status says all; what else it sends is neither read nor waited for.
    await response.body?.cancel();
    judge(response, now);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof WebhookError) throw error;
    const reason = ending.signal.aborted ? "timeout" : "unreachable";
    // What the network said. What fetch says itself may hold the URL, and the URL a secret.
    const cause = error instanceof Error ? error.cause : undefined;
    throw new WebhookError(reason, { away: true, cause });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
  }
}

function signatures(secrets: readonly Uint8Array[], content: string): string {
  return secrets
    .map((secret) => `v1,${createHmac("sha256", secret).update(content).digest("base64")}`)
    .join(" ");
}

function judge({ headers, ok, status }: Response, now: number): void {
  if (ok) return;
  if (status >= 300 && status < 400) throw new WebhookError("redirect");
  const retryAfterMs = retryAfter(headers.get("retry-after") ?? "", now);
  throw new WebhookError(String(status), { away: AWAY.includes(status), retryAfterMs });
}

/** RFC 9110 §10.2.3: seconds, or a date; what is neither asks for nothing. */
function retryAfter(asked: string, now: number): number {
  const ms = SECONDS.test(asked) ? Number(asked) * 1_000 : Date.parse(asked) - now;
  return ms > 0 ? Math.min(ms, RETRY_AFTER_MS_MAX) : 0;
}

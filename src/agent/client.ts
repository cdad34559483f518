/** Requests to the service that are repeated until somebody answers: an agent has all the time. */
import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { AgentError } from "./failure.ts";
import { Patience } from "./patience.ts";

/** What the client needs of the world. */
export interface Surroundings {
  fetch: typeof fetch;
  /** Milliseconds since the epoch. */
  now(): number;
  sleep(ms: number, signal: AbortSignal | undefined): Promise<void>;
  /** 0 ≤ random < 1, for jitter only. */
  random(): number;
}

export const SURROUNDINGS: Surroundings = {
  fetch: (...args) => fetch(...args),
  now: () => Date.now(),
  sleep: async (ms, signal) => {
    await wait(ms, undefined, signal === undefined ? {} : { signal });
  },
  random: () => Math.random(),
};

export interface ClientOptions {
  server: string;
  surroundings: Surroundings;
  /** Ends waiting and sending; what is under way then counts as not answered. */
  signal?: AbortSignal | undefined;
  /** How long one answer may take, to its last byte; a minute when left out. */
  timeoutMs?: number;
  /** Told before each pause: why, and for how many milliseconds. */
  onRetry?: ((reason: string, ms: number) => void) | undefined;
}

export interface Answer {
  status: number;
  /** Parsed JSON; undefined when the body is none. */
  body: unknown;
}

/** The answer asks to come again, or comes from something in between (RFC 9110 §15). */
const TRANSIENT = new Set([408, 429, 500, 502, 503, 504]);
const TIMEOUT_MS = 60_000;
/** 500 proofs, each with an entry that holds a report of 4 KiB. */
const ANSWER_BYTES_MAX = 8 * 1024 * 1024;
const PAUSE_MS_FIRST = 500;
const PAUSE_MS_MAX = 60_000;
/** A server that asks for more patience than this is asked again all the same. */
const RETRY_AFTER_MS_MAX = 15 * 60_000;
/** `Date` has whole seconds: on average, half of one has passed. */
const HALF_SECOND_MS = 500;

const ProblemBody = z.object({ code: z.string(), title: z.string().optional() });

export class Client {
  readonly #options: ClientOptions;
  readonly #base: URL;
  #clockOffset: number | undefined;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#base = new URL(options.server.endsWith("/") ? options.server : `${options.server}/`);
  }

  get server(): string {
    return this.#base.href;
  }

  now(): number {
    return this.#options.surroundings.now();
  }

  /** Server's clock less ours, in milliseconds give or take a second; undefined before any answer. */
  get clockOffset(): number | undefined {
    return this.#clockOffset;
  }

  /**
   * One answer that is worth reading, however long it takes, or as long as there is patience.
   * @param path without a leading slash
   * @throws AgentError `unavailable`, where that is over, or would be before the server wants to be asked
   */
  async request(
    path: string,
    post?: { type: string; body: string },
    patience: Patience = new Patience(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY),
  ): Promise<Answer> {
    for (let attempt = 0; ; attempt++) {
      const { answer, reason, retryAfterMs } = await this.#try(path, post, patience);
      if (answer !== undefined) return answer;
      const { surroundings, signal, onRetry } = this.#options;
      const longest = Math.min(PAUSE_MS_MAX, PAUSE_MS_FIRST * 2 ** Math.min(attempt, 20));
      // Between half and all of it: thousands of agents must not come back at the same moment.
      const ms = Math.max(retryAfterMs, Math.ceil(longest * (0.5 + surroundings.random() / 2)));
      if (attempt + 1 >= patience.attempts || ms >= patience.leftMs) {
        throw new AgentError("unavailable", `${this.server} does not answer: ${reason}.`);
      }
      onRetry?.(reason, ms);
      await surroundings.sleep(ms, signal);
      patience.spend(ms);
    }
  }

  /** @throws AgentError `unavailable`, where patience does not last for it */
  async pause(ms: number, patience: Patience): Promise<void> {
    if (ms >= patience.leftMs) {
      throw new AgentError("unavailable", `${this.server} does not show its newest yet.`);
    }
    await this.#options.surroundings.sleep(ms, this.#options.signal);
    patience.spend(ms);
  }

  async #try(
    path: string,
    post: { type: string; body: string } | undefined,
    patience: Patience,
  ): Promise<{ answer?: Answer; reason: string; retryAfterMs: number }> {
    const { surroundings, signal, timeoutMs = TIMEOUT_MS } = this.#options;
    const limit = AbortSignal.timeout(Math.max(1, Math.ceil(Math.min(timeoutMs, patience.leftMs))));
    const sent = surroundings.now();
    const begun = performance.now();
    try {
      const response = await surroundings.fetch(new URL(path, this.#base), {
        method: post === undefined ? "GET" : "POST",
        headers: { accept: "application/json", ...(post && { "content-type": post.type }) },
        body: post?.body ?? null,
        redirect: "error", // a report goes where the enrolment said, or nowhere
        signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
      });
      this.#noteClock(response.headers.get("date"), sent);
      const text = await readCapped(response);
      if (TRANSIENT.has(response.status)) {
        const retryAfterMs = this.#retryAfter(response.headers.get("retry-after"));
        return { reason: `answered ${response.status}`, retryAfterMs };
      }
      return {
        answer: { status: response.status, body: parseJson(text) },
        reason: "",
        retryAfterMs: 0,
      };
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof AgentError) throw error;
      return { reason: reasonOf(error), retryAfterMs: 0 };
    } finally {
      patience.spend(performance.now() - begun);
    }
  }

  #noteClock(date: string | null, sent: number): void {
    const server = Date.parse(date ?? "");
    if (Number.isNaN(server)) return;
    const middle = (sent + this.now()) / 2;
    this.#clockOffset = Math.round(server + HALF_SECOND_MS - middle);
  }

  /** RFC 9110 §10.2.3: seconds, or a date. */
  #retryAfter(header: string | null): number {
    if (header === null) return 0;
    const ms = /^[0-9]+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - this.now();
    return Number.isNaN(ms) ? 0 : Math.max(0, Math.min(ms, RETRY_AFTER_MS_MAX));
  }
}

/** The error for an answer that is not the one hoped for. */
export function refusal(client: Client, what: string, { status, body }: Answer): AgentError {
  const problem = ProblemBody.safeParse(body);
  const said = problem.success
    ? `${problem.data.code}${problem.data.title === undefined ? "" : ` (${problem.data.title})`}`
    : "no problem document: is this the right address?";
  return new AgentError("refused", `${client.server} refused ${what}: ${status}, ${said}.`);
}

/** @throws AgentError `protocol`, for an answer that only another program gives */
export function parseAnswer<T>(schema: z.ZodType<T>, client: Client, { body }: Answer): T {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  throw new AgentError("protocol", `${client.server} gave an answer that is not Minutebook's.`);
}

async function readCapped(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let length = 0;
  for await (const chunk of response.body ?? []) {
    const bytes: Uint8Array = chunk;
    length += bytes.length;
    if (length > ANSWER_BYTES_MAX) {
      throw new AgentError("protocol", `${response.url} gives answers without end.`);
    }
    text += decoder.decode(bytes, { stream: true });
  }
  return text + decoder.decode();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // for the caller's schema to refuse
  }
}

/** fetch says "fetch failed" and keeps what happened in `cause`. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return "code" in cause ? String(cause.code) : cause.message;
}

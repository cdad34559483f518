/**
 * Tells gitlab-runner to stop a job, by one header on an answer of GitLab's. Everything is forwarded and
 * every answer is GitLab's (docs/decisions/0025-relay.md): whatever is not known, passes.
 */
import type { IncomingMessage } from "node:http";
import { endOf, exchangeOf, readGivenJob, readState, readSystemId } from "./exchange.ts";
import { endToEnd, type RawHeaders, valuesOf, withHeader } from "./headers.ts";
import type { Head, Watcher } from "./proxy.ts";
import type { Register, RelayedJob } from "./register.ts";
import type { Upstream } from "./upstream.ts";

export interface BailiffOptions {
  register: Register;
  upstream: Upstream;
  /** Whether a job that is about to begin must not: false where that is not known in time. */
  mustNotBegin: (job: RelayedJob) => Promise<boolean>;
  /** Whether the newest answer of the service still says that it must stop. */
  mustStop: (job: RelayedJob) => boolean;
  onNotice: (sentence: string) => void;
}

/** What was done so far. */
export interface Counts {
  /** Jobs that runners were given. */
  given: number;
  refused: number;
  stopped: number;
}

const JOB_STATUS = "Job-Status";
const ENDED = new Set(["failed", "canceled"]);
const UPDATE_BYTES_MAX = 256 * 1024;
const REQUEST_BYTES_MAX = 1024 * 1024;
const GIVEN_BYTES_MAX = 16 * 1024 * 1024;
/** GitLab's answer to the end of a job that is refused; the runner waits for it. */
const END_MS = 5_000;

export class Bailiff {
  readonly counts: Counts = { given: 0, refused: 0, stopped: 0 };
  readonly #options: BailiffOptions;

  constructor(options: BailiffOptions) {
    this.#options = options;
  }

  watch(request: IncomingMessage): Watcher {
    const exchange = exchangeOf(request.method ?? "", request.url ?? "");
    switch (exchange.kind) {
      case "request":
        return this.#watchRequest();
      case "update":
        return this.#watchUpdate(exchange.job, request);
      case "trace":
        return this.#watchTrace(exchange.job);
      case "other":
        return {};
    }
  }

  #watchRequest(): Watcher {
    const asked = new Copy(REQUEST_BYTES_MAX);
    const given = new Copy(GIVEN_BYTES_MAX);
    let encoding: string | undefined;
    return {
      sent: (chunk) => asked.take(chunk),
      head: async ({ status, headers }) => {
        if (status === 201) encoding = valuesOf(headers, "content-encoding").join().toLowerCase();
        return headers;
      },
      answered: (chunk) => {
        if (encoding !== undefined) given.take(chunk);
      },
      complete: () => {
        if (encoding === undefined) return;
        this.counts.given += 1;
        const job = readGivenJob(given.bytes, encoding);
        if (job !== undefined) this.#options.register.give(job, readSystemId(asked.bytes));
      },
    };
  }

  #watchUpdate(id: string, request: IncomingMessage): Watcher {
    const { register } = this.#options;
    const body = new Copy(UPDATE_BYTES_MAX);
    let first: Promise<boolean> | undefined;
    let turn: Turn | undefined;
    return {
      sent: (chunk) => body.take(chunk),
      asked: () => {
        const state = readState(body.bytes);
        const job = register.get(id);
        if (job !== undefined) register.heard(job);
        // The last word on a job is between the runner and GitLab, and so is all that comes after it.
        if (state === "other") register.end(id);
        if (state !== "running") return;
        if (job?.begun === undefined) first = this.#ask(job);
        else turn = new Turn(this.#options, this.counts, id, job);
      },
      head: async (head) => {
        if (first === undefined) return turn?.head(head) ?? head.headers;
        if (!isSuccess(head)) return head.headers; // tried again, or given up, by the runner
        return this.#begin(id, request, body.bytes, head, await first);
      },
      ended: (whole) => turn?.ended(whole),
    };
  }

  #ask(job: RelayedJob | undefined): Promise<boolean> {
    return job === undefined ? Promise.resolve(false) : this.#options.mustNotBegin(job);
  }

  /** GitLab has taken the first `PUT state=running` of a job. */
  async #begin(
    id: string,
    request: IncomingMessage,
    body: Uint8Array,
    head: Head,
    mustNot: boolean,
  ): Promise<RawHeaders> {
    const { register, onNotice } = this.#options;
    if (mustNot && !isEnded(head)) {
      // GitLab first: the runner says nothing more of a job that it is refused, so GitLab would have it
      // run, and meter it, for an hour. Killed in between, the runner begins, and GitLab ends it.
      if (await this.#end(request, body)) {
        this.counts.refused += 1;
        onNotice(`Job ${id} is beyond its quota: refused.`);
        register.end(id);
        return withHeader(head.headers, JOB_STATUS, "failed");
      }
      onNotice(
        `Job ${id} is beyond its quota, and GitLab did not hear of it: begun, to be stopped.`,
      );
    }
    register.begin(id);
    return head.headers;
  }

  /** Ends a job in the runner's name. True once GitLab has done it. */
  #end(request: IncomingMessage, body: Uint8Array): Promise<boolean> {
    const end = endOf(body);
    if (end === undefined) return Promise.resolve(false);
    const kept = endToEnd(request.rawHeaders);
    const headers = withHeader(kept, "Content-Length", String(Buffer.byteLength(end)));
    return new Promise((resolve) => {
      const outgoing = this.#options.upstream.open("PUT", request.url ?? "", headers);
      outgoing.setTimeout(END_MS, () => outgoing.destroy());
      outgoing.on("response", (answer) => {
        answer.resume();
        resolve(answer.statusCode === 200);
      });
      outgoing.on("close", () => resolve(false));
      outgoing.on("error", () => resolve(false));
      outgoing.end(end);
    });
  }

  #watchTrace(id: string): Watcher {
    const { register } = this.#options;
    const job = register.get(id);
    if (job?.begun === undefined) return {};
    register.heard(job);
    const turn = new Turn(this.#options, this.counts, id, job);
    return {
      head: async (head) => turn.head(head),
      ended: (whole) => turn.ended(whole),
    };
  }
}

/** One exchange about a running job, by which it may be told to stop. */
class Turn {
  readonly #options: BailiffOptions;
  readonly #counts: Counts;
  readonly #id: string;
  readonly #job: RelayedJob;
  #tells = false;

  constructor(options: BailiffOptions, counts: Counts, id: string, job: RelayedJob) {
    this.#options = options;
    this.#counts = counts;
    this.#id = id;
    this.#job = job;
  }

  head(head: Head): RawHeaders {
    const { register, mustStop } = this.#options;
    const job = this.#job;
    // Its last word may have overtaken this exchange. And an answer that the runner tries again, or
    // that already ends the job, is not to be spent on what is said once.
    const over = register.get(this.#id) !== job || job.told;
    if (over || !isSuccess(head) || isEnded(head) || !mustStop(job)) return head.headers;
    this.#tells = true;
    job.told = true;
    return withHeader(head.headers, JOB_STATUS, "failed");
  }

  ended(whole: boolean): void {
    if (!this.#tells) return;
    const { register, onNotice } = this.#options;
    if (!whole) {
      this.#job.told = false; // the runner never had it
      return;
    }
    // After the fact: a relay that is killed in between says it once more, rather than never.
    register.keep(this.#id, this.#job);
    this.#counts.stopped += 1;
    onNotice(`Job ${this.#id} is beyond its quota: its runner was told to stop it.`);
  }
}

function isSuccess({ status }: Head): boolean {
  return status >= 200 && status <= 299;
}

function isEnded({ headers }: Head): boolean {
  return valuesOf(headers, "job-status").some((value) => ENDED.has(value));
}

/** Of what passes, up to a bound; what is longer is not read at all. */
class Copy {
  readonly #max: number;
  #chunks: Uint8Array[] = [];
  #length = 0;

  constructor(max: number) {
    this.#max = max;
  }

  take(chunk: Uint8Array): void {
    this.#length += chunk.length;
    if (this.#length <= this.#max) this.#chunks.push(chunk);
    else this.#chunks = [];
  }

  get bytes(): Uint8Array {
    return Buffer.concat(this.#chunks);
  }
}

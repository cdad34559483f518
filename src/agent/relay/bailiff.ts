/**
 * Tells gitlab-runner to stop a job, by one header on an answer of GitLab's. Everything is forwarded and
 * every answer is GitLab's (docs/decisions/0025-relay.md): whatever is not known, passes.
 */
import type { IncomingMessage } from "node:http";
import { type Claim, claimOf } from "./claim.ts";
import { endOf, exchangeOf, readGivenJob, readSystemId, readUpdate, tokensOf } from "./exchange.ts";
import { endToEnd, type RawHeaders, valuesOf, withHeader, without } from "./headers.ts";
import type { Head, Watcher } from "./proxy.ts";
import type { RelayedJob } from "./register.ts";
import { isEnded, isSuccess, JOB_STATUS, Turn, type TurnOptions } from "./turn.ts";
import type { Upstream } from "./upstream.ts";

export interface BailiffOptions extends Omit<TurnOptions, "onTold"> {
  upstream: Upstream;
  /** Whether a job that is about to begin must not: false where that is not known in time. */
  mustNotBegin: (job: RelayedJob) => Promise<boolean>;
  onNotice: (sentence: string) => void;
}

/** What was done so far. */
export interface Counts {
  /** Jobs that runners were given. */
  given: number;
  refused: number;
  stopped: number;
}

const UPDATE_BYTES_MAX = 256 * 1024;
const REQUEST_BYTES_MAX = 1024 * 1024;
const GIVEN_BYTES_MAX = 16 * 1024 * 1024;
/** GitLab's answer to the end of a job that is refused; the runner waits for it. */
const END_MS = 5_000;

export class Bailiff {
  readonly counts: Counts = { given: 0, refused: 0, stopped: 0 };
  readonly #options: BailiffOptions & TurnOptions;

  constructor(options: BailiffOptions) {
    const onTold = (id: string): void => {
      this.counts.stopped += 1;
      options.onNotice(`Job ${id} is beyond its quota: its runner was told to stop it.`);
    };
    this.#options = { ...options, onTold };
  }

  watch(request: IncomingMessage): Watcher {
    const exchange = exchangeOf(request.method ?? "", request.url ?? "");
    switch (exchange.kind) {
      case "request":
        return this.#watchRequest();
      case "update":
        return this.#watchUpdate(exchange.job, request);
      case "trace":
        return this.#watchTrace(exchange.job, request);
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
    let isOver = false;
    let claim: Claim | undefined;
    let first: Promise<boolean> | undefined;
    let turn: Turn | undefined;
    return {
      sent: (chunk) => body.take(chunk),
      asked: () => {
        if (isOver) return; // answered before it was read: then GitLab has read it no better
        const update = readUpdate(request.url ?? "", request.rawHeaders, body.bytes);
        claim = claimOf(register, id, update);
        if (claim === undefined || update.state !== "running") return;
        const { job } = claim;
        if (job?.begun === undefined) first = this.#ask(job);
        else turn = new Turn(this.#options, id, job);
      },
      head: async (head) => {
        isOver = true;
        claim?.answered(head);
        if (first === undefined) return turn?.head(head) ?? head.headers;
        if (!isSuccess(head)) return head.headers; // tried again, or given up, by the runner
        const headers = await this.#begin(id, request, body.bytes, head, await first);
        claim?.begun();
        return headers;
      },
      ended: (whole) => {
        isOver = true;
        claim?.over();
        turn?.ended(whole);
      },
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
    const kept = without(endToEnd(request.rawHeaders), new Set(["expect"]));
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

  #watchTrace(id: string, { rawHeaders }: IncomingMessage): Watcher {
    const { register } = this.#options;
    const tokens = tokensOf(rawHeaders);
    const claim = claimOf(register, id, { state: "none", tokens, token: undefined });
    if (claim?.job?.begun === undefined) return {};
    const turn = new Turn(this.#options, id, claim.job);
    return {
      head: async (head) => {
        claim.answered(head);
        return turn.head(head);
      },
      ended: (whole) => turn.ended(whole),
    };
  }
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

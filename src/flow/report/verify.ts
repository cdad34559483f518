/**
 * Signatures off the writer's thread: verification is the dearest part of a report (80 µs, of about
 * 150 in all). Texts queue up here, and each thread takes as many as there are, up to a bound, so
 * that single reports share the cost of a message and large requests spread over all threads.
 */
import type { Worker } from "node:worker_threads";
import type { Hash } from "../../core/hash.ts";
import type { Report } from "../../core/report.ts";
import type { Refused } from "./examine.ts";
import { HASHES_STRIDE, type Judged, type Order, type Reply } from "./judge.ts";
import { startWorker } from "./start-worker.ts";

export interface SignedReport {
  kind: "signed";
  jws: string;
  kid: string;
  /** SHA-256 of the text. */
  digest: Hash;
  report: Report;
  /** SHA-256 of what was measured. */
  fact: Hash;
}

export type Verdict = SignedReport | Refused;

export interface Verifier {
  /** In the order of the texts. Rejects when the lookup of keys fails. */
  verify(texts: readonly string[]): Promise<Verdict[]>;
  /** Texts that wait for a thread or are in one. */
  pending(): number;
  close(): Promise<void>;
}

/** Texts of one message: 5 ms of work, so that a waiting request is never far from its turn. */
const CHUNK_MAX = 64;
/** Messages in a thread at once: one in work, one that waits, so that it never idles. */
const DEPTH = 2;

interface Slot {
  text: string;
  done: (verdict: Verdict) => void;
  failed: (error: unknown) => void;
}

interface Thread {
  worker: Worker;
  chunks: Map<number, readonly Slot[]>;
}

type Lookup = (kids: readonly string[]) => Promise<ReadonlyMap<string, Uint8Array>>;

/**
 * @param options.threads how many; one per core that may verify
 * @param options.lookup the public keys of those kids that are enrolled anywhere
 */
export function startVerifier(options: { threads: number; lookup: Lookup }): Verifier {
  return new Threads(options);
}

class Threads implements Verifier {
  readonly #lookup: Lookup;
  readonly #threads: Thread[];
  readonly #queue: Slot[] = [];
  #inThreads = 0;
  #lastId = 0;
  #closed = false;

  constructor({ threads, lookup }: { threads: number; lookup: Lookup }) {
    this.#lookup = lookup;
    this.#threads = Array.from({ length: threads }, () => this.#start());
  }

  pending(): number {
    return this.#queue.length + this.#inThreads;
  }

  async verify(texts: readonly string[]): Promise<Verdict[]> {
    if (this.#closed) throw new Error("verify: closed");
    // After all requests of this turn of the event loop: they share a message.
    setImmediate(() => this.#feed());
    return await Promise.all(
      texts.map(
        (text) =>
          new Promise<Verdict>((done, failed) => {
            this.#queue.push({ text, done, failed });
          }),
      ),
    );
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#threads.map(({ worker }) => worker.terminate()));
    const error = new Error("verify: closed");
    for (const { chunks } of this.#threads) {
      for (const slots of chunks.values()) this.#fail(slots, error);
    }
    for (const slot of this.#queue.splice(0)) slot.failed(error);
  }

  #start(): Thread {
    const thread: Thread = { worker: startWorker(), chunks: new Map() };
    thread.worker.on("message", (reply: Reply) => this.#received(thread, reply));
    thread.worker.on("error", (error) => this.#died(thread, error));
    return thread;
  }

  /** What it had in work fails; a new one takes its place. */
  #died(thread: Thread, error: unknown): void {
    for (const slots of thread.chunks.values()) this.#fail(slots, error);
    thread.chunks.clear();
    if (this.#closed) return;
    this.#threads[this.#threads.indexOf(thread)] = this.#start();
    this.#feed();
  }

  #fail(slots: readonly Slot[], error: unknown): void {
    this.#inThreads -= slots.length;
    for (const slot of slots) slot.failed(error);
  }

  #feed(): void {
    for (let depth = 0; depth < DEPTH; depth += 1) {
      for (const thread of this.#threads) {
        if (thread.chunks.size > depth || this.#queue.length === 0) continue;
        const share = Math.ceil(this.#queue.length / this.#threads.length);
        const slots = this.#queue.splice(0, Math.min(CHUNK_MAX, share));
        this.#lastId += 1;
        this.#inThreads += slots.length;
        thread.chunks.set(this.#lastId, slots);
        send(thread, { kind: "verify", id: this.#lastId, texts: slots.map(({ text }) => text) });
      }
    }
  }

  #received(thread: Thread, reply: Reply): void {
    if (reply.kind === "ask") {
      this.#teach(thread, reply);
      return;
    }
    const slots = thread.chunks.get(reply.id) ?? [];
    thread.chunks.delete(reply.id);
    this.#inThreads -= slots.length;
    this.#feed();
    slots.forEach((slot, i) => {
      slot.done(verdictOf(slot.text, reply.judged[i], reply.hashes, i));
    });
  }

  #teach(thread: Thread, { id, kids }: Reply & { kind: "ask" }): void {
    this.#lookup(kids).then(
      (keys) => send(thread, { kind: "teach", id, keys }),
      (error: unknown) => {
        // The thread goes on without the keys; whoever asked for these texts hears why.
        this.#fail(thread.chunks.get(id) ?? [], error);
        thread.chunks.set(id, []);
        send(thread, { kind: "teach", id, keys: new Map() });
      },
    );
  }
}

function send(thread: Thread, order: Order): void {
  thread.worker.postMessage(order);
}

function verdictOf(
  jws: string,
  judged: Judged | undefined,
  hashes: Uint8Array,
  i: number,
): Verdict {
  if (judged === undefined) throw new Error("verify: a thread lost a text");
  const offset = i * HASHES_STRIDE;
  const digest = hashes.subarray(offset, offset + 32);
  if (typeof judged !== "string") return { kind: "refused", digest, jws, ...judged };
  const payload = jws.slice(jws.indexOf(".") + 1, jws.lastIndexOf("."));
  // The thread has found these bytes to be a report in canonical form.
  const report: Report = JSON.parse(Buffer.from(payload, "base64url").toString());
  const fact = hashes.subarray(offset + 32, offset + HASHES_STRIDE);
  return { kind: "signed", jws, kid: judged, digest, report, fact };
}

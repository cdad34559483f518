/** Bundles, read and what agents signed in them verified on all cores, while the calling thread goes on. */
import { availableParallelism } from "node:os";
import type { Worker } from "node:worker_threads";
import type { Packed } from "./reading/bundle.ts";
import type { Reader } from "./reading/reader.ts";
import { startWorker } from "./start-thread.ts";

export interface ThreadReader extends Reader {
  /** What is still under way is never answered. */
  close(): Promise<void>;
}

/** What a thread is told: keys to learn, or a bundle to read and answer. */
export type Order =
  | { kind: "learn"; kid: string; publicKey: Uint8Array }
  | { kind: "read"; bundle: Uint8Array };

/** Reading an entry costs several times what the calling thread does with it; memory is kept. */
const THREADS_MAX = 4;

interface Thread {
  worker: Worker;
  /** Orders that it was given, oldest first: it answers in this order. */
  waiting: { answer(bundle: Packed): void; fail(error: unknown): void }[];
}

/** Threads start with the first bundle. */
export function openThreads(count = Math.min(availableParallelism(), THREADS_MAX)): ThreadReader {
  const threads: Thread[] = [];
  const learned: Order[] = [];
  return {
    learn: (kid, publicKey) => {
      const lesson: Order = { kind: "learn", kid, publicKey };
      learned.push(lesson);
      for (const { worker } of threads) worker.postMessage(lesson);
    },
    read: (bundle) => {
      while (threads.length < count) threads.push(startThread(learned));
      const idlest = threads.reduce((a, b) => (b.waiting.length < a.waiting.length ? b : a));
      return new Promise((answer, fail) => {
        idlest.waiting.push({ answer, fail });
        idlest.worker.postMessage({ kind: "read", bundle } satisfies Order);
      });
    },
    close: async () => {
      await Promise.all(threads.map(({ worker }) => worker.terminate()));
    },
  };
}

function startThread(learned: readonly Order[]): Thread {
  const worker = startWorker({
    resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 },
  });
  const thread: Thread = { worker, waiting: [] };
  for (const lesson of learned) worker.postMessage(lesson);
  worker.on("message", (packed: Packed) => {
    thread.waiting.shift()?.answer(packed);
  });
  worker.on("error", (error) => {
    for (const { fail } of thread.waiting.splice(0)) fail(error);
  });
  return thread;
}

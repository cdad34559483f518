/** How a thread of `threads.ts` comes up: built, or run from source. */
import { Worker, type WorkerOptions } from "node:worker_threads";

/**
 * Run from source (tsx), a thread needs the loader too, and Node 20 does not hand it on. It costs two seconds
 * of each thread: tests start it as it is compiled (test/start-thread.ts).
 */
export function startWorker(options: WorkerOptions): Worker {
  if (!import.meta.url.endsWith(".ts")) {
    return new Worker(new URL("thread.js", import.meta.url), options);
  }
  const thread = JSON.stringify(new URL("thread.ts", import.meta.url).href);
  const load = `import("tsx/esm/api").then((tsx) => (tsx.register(), import(${thread})))`;
  return new Worker(load, { ...options, eval: true });
}

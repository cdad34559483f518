/** How a thread of the verifier comes up: built, or run from source. */
import { Worker } from "node:worker_threads";

/**
 * Run from source (tsx), the thread needs the same loader, and Node 20 does not give it the one of
 * `--import`. It costs a second of each thread: tests that start many have one made once (test/threads.ts).
 */
export function startWorker(): Worker {
  if (!import.meta.url.endsWith(".ts")) {
    return new Worker(new URL("./verifier-worker.js", import.meta.url));
  }
  const source = JSON.stringify(new URL("./verifier-worker.ts", import.meta.url).href);
  const load = `import("tsx/esm/api").then((tsx) => (tsx.register(), import(${source})))`;
  return new Worker(load, { eval: true });
}

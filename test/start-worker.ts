/** Stands for src/flow/report/start-worker.ts in tests (see vitest.config.ts): the same thread, bundled once per run. */
import { Worker } from "node:worker_threads";
import { inject } from "vitest";

export function startWorker(): Worker {
  return new Worker(inject("verifier"));
}

/** Stands for audit/start-thread.ts in tests (see vitest.config.ts): the same thread, as test/compile.ts makes it. */
import { Worker, type WorkerOptions } from "node:worker_threads";
import { compiled } from "./compile.ts";

const THREAD = compiled(new URL("../audit/thread.ts", import.meta.url));

export function startWorker(options: WorkerOptions): Worker {
  return new Worker(THREAD, options);
}

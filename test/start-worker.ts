/**
 * Stands for src/flow/report/start-worker.ts in tests (see vitest.config.ts): each verifier has a port of its own to
 * one thread that all share. A thread costs 0.2 s of CPU to start, and tests open hundreds of doors.
 */
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import { inject } from "vitest";

/** Stands while anybody has a port to it. */
let shared: { thread: Worker; ports: Set<MessagePort> } | undefined;

export function startWorker(): MessagePort & Pick<Worker, "terminate"> {
  const own = shared ?? { thread: new Worker(inject("verifier")), ports: new Set() };
  shared = own;
  const { port1: ours, port2: its } = new MessageChannel();
  own.ports.add(ours);
  own.thread.postMessage(its, [its]);
  const terminate = async (): Promise<number> => {
    ours.close();
    own.ports.delete(ours);
    if (own.ports.size > 0) return 0;
    if (shared === own) shared = undefined;
    return await own.thread.terminate();
  };
  return Object.assign(ours, { terminate });
}

/** The thread that the verifiers of a test's process share (see start-worker.ts): a port of its own for each. */
import { type MessagePort, parentPort } from "node:worker_threads";
import { judge } from "../src/flow/report/judge.ts";

parentPort?.on("message", (port: MessagePort) => judge(port));

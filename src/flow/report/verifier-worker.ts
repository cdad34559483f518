/** A thread of the verifier: see judge.ts for what it does. */
import { parentPort } from "node:worker_threads";
import { judge } from "./judge.ts";

if (parentPort !== null) judge(parentPort);

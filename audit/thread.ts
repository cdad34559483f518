/** One thread of `threads.ts`: learns keys, reads texts, and answers order by order. */
import { parentPort } from "node:worker_threads";
import { packAnswer } from "./answer.ts";
import { sha256, verifyNow } from "./native.ts";
import { readSigned } from "./prefix/statement.ts";
import type { Order } from "./threads.ts";

const keys = new Map<string, Uint8Array>();

parentPort?.on("message", (order: Order) => {
  if (order.kind === "learn") {
    keys.set(order.kid, order.publicKey);
    return;
  }
  const tools = { hash: sha256, verify: verifyNow };
  const answer = packAnswer(order.texts.map((text) => readSigned(text, keys, tools)));
  parentPort?.postMessage(answer, [answer.hashes.buffer]);
});

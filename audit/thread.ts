/** One thread of `threads.ts`: learns keys, reads bundles, and answers order by order. */
import { parentPort } from "node:worker_threads";
import { sha256, verifyNow } from "./native.ts";
import { packBundle } from "./reading/bundle.ts";
import { Keys } from "./reading/keys.ts";
import type { Order } from "./threads.ts";

const keys = new Keys();

parentPort?.on("message", (order: Order) => {
  if (order.kind === "learn") {
    keys.learn(order.kid, order.publicKey);
    return;
  }
  const packed = packBundle(order.bundle, { keys, hash: sha256, verify: verifyNow });
  parentPort?.postMessage(packed, [packed.hashes.buffer]);
});

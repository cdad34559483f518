/** Receipts held against their log: whoever has one may ask for the proofs of what it promises. */
import { openProofRoom } from "../flow/report/proof-room.ts";
import { Promised, proveReceipt } from "../flow/report/prove.ts";
import { answer } from "./answer.ts";
import type { Services } from "./app.ts";
import { readJson } from "./body.ts";
import type { Router } from "./router.ts";

/** 500 results of 240 bytes, and more than twice that. */
const PROMISE_BYTES_MAX = 256 * 1024;

export function receiptRoutes(router: Router, { flow, serving }: Services): void {
  const keeping = { ...serving, keyring: flow.keyring, room: openProofRoom() };
  router.open("POST /v1/receipts/prove", async (ask) => {
    const promised = await readJson(ask, Promised, PROMISE_BYTES_MAX);
    return answer(200, await proveReceipt(keeping, promised));
  });
}

/** What builds cost, and who pays: cards, classes, limits, packs, accounts. */
import { account, NewAccount } from "../flow/money/account.ts";
import { bringInForce } from "../flow/quota/bring-in-force.ts";
import { card, NewCard } from "../flow/rate/card.ts";
import { classify, NewClass } from "../flow/rate/classify.ts";
import { limit, NewLimit } from "../flow/rate/limit.ts";
import { pack } from "../flow/rate/pack.ts";
import { assertLog, type Caller, isPerson } from "./access.ts";
import { answerReceipt } from "./answer.ts";
import type { Services } from "./app.ts";
import { readJson } from "./body.ts";
import { LogPack } from "./operations/shapes.ts";
import { logOf, namespaceOf } from "./path.ts";
import type { Router } from "./router.ts";

export function financeRoutes(router: Router, flow: Services["flow"]): void {
  router.guarded("POST /v1/logs/:log/rate_cards", async (ask, caller) => {
    const log = logOf(ask, caller);
    const input = await readJson(ask, NewCard);
    return answerReceipt(await card(flow, { log, by: caller.id }, input));
  });

  router.guarded("POST /v1/logs/:log/project_classes", async (ask, caller) => {
    const log = logOf(ask, caller);
    const input = await readJson(ask, NewClass);
    return answerReceipt(await classify(flow, { log, ...(await speaker(caller, log)) }, input));
  });

  router.guarded("PUT /v1/quotas/:log/:namespace", async (ask, caller) => {
    const { log, namespace: namespace_id } = namespaceOf(ask, caller);
    const input = await readJson(ask, NewLimit);
    const receipt = await limit(
      flow,
      { log, namespace_id, ...(await speaker(caller, log)) },
      input,
    );
    await bringInForce(flow.quota, { log, namespace: namespace_id }, receipt);
    return answerReceipt(receipt);
  });

  router.guarded("PUT /v1/accounts/:log/:namespace", async (ask, caller) => {
    const { log, namespace: namespace_id } = namespaceOf(ask, caller);
    const input = await readJson(ask, NewAccount);
    return answerReceipt(
      await account(flow, { log, namespace_id, ...(await speaker(caller, log)) }, input),
    );
  });

  router.guarded("PUT /v1/accounts/:log", async (ask, caller) => {
    const log = logOf(ask, caller);
    const input = await readJson(ask, NewAccount);
    return answerReceipt(
      await account(flow, { log, namespace_id: "", ...(await speaker(caller, log)) }, input),
    );
  });

  router.guarded("POST /v1/packs", async (ask, caller) => {
    const { log, ...input } = await readJson(ask, LogPack);
    assertLog(caller, log);
    const receipt = await pack(flow, { log, ...(await speaker(caller, log)) }, input);
    const key = { log, namespace: input.namespace_id };
    await bringInForce(flow.quota, key, receipt);
    return answerReceipt(receipt);
  });
}

async function speaker(caller: Caller, log: string): Promise<{ by: string; isPerson: boolean }> {
  return { by: caller.id, isPerson: await isPerson(caller, log) };
}

/** What builds cost: cards, classes, limits. */
import { card, NewCard } from "../flow/rate/card.ts";
import { classify, NewClass } from "../flow/rate/classify.ts";
import { limit, NewLimit } from "../flow/rate/limit.ts";
import { answerReceipt } from "./answer.ts";
import type { Services } from "./app.ts";
import { readJson } from "./body.ts";
import { logOf } from "./path.ts";
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
    return answerReceipt(await classify(flow, { log, by: caller.id }, input));
  });

  router.guarded("POST /v1/logs/:log/quotas", async (ask, caller) => {
    const log = logOf(ask, caller);
    const input = await readJson(ask, NewLimit);
    return answerReceipt(await limit(flow, { log, by: caller.id }, input));
  });
}

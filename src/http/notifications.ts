/** What a namespace was told, seen by its owner. */
import { showNotified } from "../flow/quota/notified.ts";
import { viewerOf } from "./access.ts";
import { answer } from "./answer.ts";
import type { Services } from "./app.ts";
import { namespaceOf, pageOf } from "./path.ts";
import type { Router } from "./router.ts";

export function notificationRoutes(router: Router, { reading }: Services): void {
  router.guarded("GET /v1/quotas/:log/:namespace/notifications", async (ask, caller) => {
    const place = namespaceOf(ask, caller);
    const search = { ...place, ...pageOf(ask), viewer: viewerOf(caller, place.log) };
    return answer(200, await showNotified(reading, search));
  });
}

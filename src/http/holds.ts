/** Reports that did not become usage, and their end. */
import { IntegerText } from "../core/unit.ts";
import { ConflictEnd, HoldEnd, resolveConflict, resolveHold } from "../flow/hold/resolve.ts";
import { type ResolvedSearch, showConflicts, showHolds } from "../flow/hold/show.ts";
import { type Caller, visibleNamespaces } from "./access.ts";
import { answer, answerReceipt } from "./answer.ts";
import type { Services } from "./app.ts";
import { parsed, readJson } from "./body.ts";
import { ResolvedSearch as Search } from "./operations/shapes.ts";
import { logOf, member } from "./path.ts";
import type { Ask, Router } from "./router.ts";

export function holdRoutes(router: Router, { control, reading }: Services): void {
  router.guarded("GET /v1/logs/:log/conflicts", async (ask, caller) => {
    const { items, ...rest } = await showConflicts(reading, searchOf(ask, caller));
    return answer(200, { ...rest, conflicts: items });
  });

  router.guarded("POST /v1/logs/:log/conflicts/:index/resolve", async (ask, caller) => {
    const { index: conflict, ...asked } = placeOf(ask, caller);
    const end = await readJson(ask, ConflictEnd);
    return answerReceipt(await resolveConflict(control, asked, { conflict, ...end }));
  });

  router.guarded("GET /v1/logs/:log/holds", async (ask, caller) => {
    const { items, ...rest } = await showHolds(reading, searchOf(ask, caller));
    return answer(200, { ...rest, holds: items });
  });

  for (const [verb, outcome] of [
    ["release", "released"],
    ["reject", "rejected"],
  ] as const) {
    router.guarded(`POST /v1/logs/:log/holds/:index/${verb}`, async (ask, caller) => {
      const { index: hold, ...asked } = placeOf(ask, caller);
      const end = await readJson(ask, HoldEnd);
      return answerReceipt(await resolveHold(control, asked, { hold, outcome, ...end }));
    });
  }
}

function searchOf(ask: Ask, caller: Caller): ResolvedSearch {
  const log = logOf(ask, caller);
  const { after, state } = parsed(Search, ask.query());
  const from = after === undefined ? {} : { after: BigInt(after) };
  return { log, state, visible: visibleNamespaces(caller, log), ...from };
}

function placeOf(ask: Ask, caller: Caller): { log: string; index: string; by: string } {
  const log = logOf(ask, caller);
  return { log, index: member(IntegerText, ask.param("index")), by: caller.id };
}

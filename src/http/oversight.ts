/** Who has access, what they did with it, and its end. */
import { bar, NewBar, showPrincipals, unbar } from "../flow/access/principals.ts";
import { NewReview, review } from "../flow/access/review.ts";
import { showAccess } from "../flow/access/show.ts";
import { assertAllLogs, assertLog, type Caller, seesLog } from "./access.ts";
import { answer, answerReceipt } from "./answer.ts";
import type { Services } from "./app.ts";
import { parsed, readJson } from "./body.ts";
import { AccessSearch, PrincipalSearch } from "./operations/shapes.ts";
import { logOf } from "./path.ts";
import type { Ask, Router } from "./router.ts";

export type Oversight = Parameters<typeof bar>[0];

export function oversightRoutes(router: Router, { flow, oversight, reading }: Services): void {
  router.guarded("GET /v1/access/:log", async (ask, caller) => {
    const log = logOf(ask, caller);
    const { day, after } = parsed(AccessSearch, ask.query());
    const page = { log, day, after: after === undefined ? undefined : BigInt(after) };
    return answer(200, await showAccess(reading, page));
  });

  router.guarded("GET /v1/principals", async (ask, caller) => {
    const { log, after } = parsed(PrincipalSearch, ask.query());
    assertLog(caller, log);
    return answer(200, await showPrincipals(reading, log, after));
  });

  const ending = async (ask: Ask, caller: Caller, end: typeof bar): Promise<Response> => {
    const id = ask.param("id");
    const { log, reason } = await readJson(ask, NewBar);
    // From all logs only who may do so on all.
    if (log === undefined) assertAllLogs(caller);
    else assertLog(caller, log);
    const of = log === undefined ? { id } : { id, log };
    const oversees = (each: string): boolean => seesLog(caller, each);
    const changed = await end(oversight, { ...of, by: caller.id, oversees, reason });
    return answer(changed ? 201 : 200, of);
  };
  router.guarded("POST /v1/principals/:id/bar", (ask, caller) => ending(ask, caller, bar));
  router.guarded("POST /v1/principals/:id/unbar", (ask, caller) => ending(ask, caller, unbar));

  router.guarded("POST /v1/logs/:log/access_reviews", async (ask, caller) => {
    const log = logOf(ask, caller);
    const input = await readJson(ask, NewReview);
    const reviewing = { ...flow, standings: oversight.standings };
    const reviewed = await review(reviewing, { log, by: caller.id }, input);
    const { principals, kept } = reviewed;
    return answerReceipt(reviewed, { principals, kept });
  });
}

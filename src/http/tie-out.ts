/** Whether a month is the same wherever it stands. */
import { MonthText } from "../core/unit.ts";
import { tieOut } from "../flow/tie-out/tie-out.ts";
import { answer } from "./answer.ts";
import type { Services } from "./app.ts";
import { logOf, member } from "./path.ts";
import type { Router } from "./router.ts";

export function tieOutRoutes(router: Router, { exports, reading }: Services): void {
  router.guarded("GET /v1/months/:log/:month/tieout", async (ask, caller) => {
    const of = { log: logOf(ask, caller), month: member(MonthText, ask.param("month")) };
    return answer(200, await tieOut({ sql: reading.sql, files: exports.files }, of));
  });
}

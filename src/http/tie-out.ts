/** Whether a month is the same wherever it stands. */
import { Problem } from "../core/problem.ts";
import { MonthText } from "../core/unit.ts";
import { tieOut } from "../flow/tie-out/tie-out.ts";
import { answer } from "./answer.ts";
import type { Services } from "./app.ts";
import { logOf, member } from "./path.ts";
import type { Router } from "./router.ts";

/** In a process: each keeps a connection of all readers for as long as it counts a month. */
const AT_ONCE_MAX = 2;

export function tieOutRoutes(router: Router, { exports, reading }: Services): void {
  let counting = 0;
  router.guarded("GET /v1/months/:log/:month/tieout", async (ask, caller) => {
    const of = { log: logOf(ask, caller), month: member(MonthText, ask.param("month")) };
    if (counting === AT_ONCE_MAX) throw new Problem("busy");
    counting += 1;
    try {
      return answer(200, await tieOut({ sql: reading.sql, files: exports.files }, of));
    } finally {
      counting -= 1;
    }
  });
}

/** Months: where they stand, how they are closed, and what is said of them for ever. */

import type { Statement } from "../core/month/statement.ts";
import { MonthText } from "../core/unit.ts";
import { assertClosable } from "../flow/month/closable.ts";
import { close } from "../flow/month/close.ts";
import { type Finishing, finishMonth } from "../flow/month/finish.ts";
import {
  allocationsOf,
  type OfMonth,
  packRollsOf,
  readStatementOf,
  statementJson,
  statementNote,
} from "../flow/month/read.ts";
import { showMonth, showMonths } from "../flow/month/show.ts";
import { withdraw } from "../flow/month/withdraw.ts";
import type { Caller } from "./access.ts";
import { answer, answerReceipt, answerText } from "./answer.ts";
import type { Services } from "./app.ts";
import { parsed } from "./body.ts";
import { AllocationSearch, PackRollSearch, StatementSearch } from "./operations/shapes.ts";
import { logOf, member } from "./path.ts";
import type { Ask, Router } from "./router.ts";

export interface Monthing {
  finishing: Finishing;
  /** The statement as a page, and the policy that browsers hold it to. */
  page: (statement: Statement, timeZone?: string) => { html: string; policy: string };
}

export function monthRoutes(router: Router, services: Services): void {
  const { control, flow, months, reading } = services;
  const { closeDelayDays } = months.finishing;

  router.guarded("GET /v1/months/:log", async (ask, caller) => {
    return answer(200, await showMonths(reading, logOf(ask, caller)));
  });

  router.guarded("GET /v1/months/:log/:month", async (ask, caller) => {
    return answer(200, await showMonth({ ...reading, closeDelayDays }, monthOf(ask, caller)));
  });

  router.guarded("POST /v1/months/:log/:month/close", async (ask, caller) => {
    const { log, month } = monthOf(ask, caller);
    await assertClosable(control, log, { month });
    return answerReceipt(
      await close({ ...flow, closeDelayDays }, { log, by: caller.id }, { month }),
    );
  });

  router.guarded("POST /v1/months/:log/:month/withdraw", async (ask, caller) => {
    const { log, month } = monthOf(ask, caller);
    return answerReceipt(await withdraw(flow, { log, by: caller.id }, month));
  });

  router.guarded("POST /v1/months/:log/:month/finish", async (ask, caller) => {
    return answerReceipt(await finishMonth(months.finishing, monthOf(ask, caller), caller.id));
  });

  statementRoutes(router, services);
}

function statementRoutes(router: Router, { flow, months, reading, serving }: Services): void {
  const noting = { ...reading, keyring: flow.keyring, proofs: serving };

  router.guarded("GET /v1/months/:log/:month/statement", async (ask, caller) => {
    return answerText(await statementJson(reading, monthOf(ask, caller)), "application/json");
  });

  router.guarded("GET /v1/months/:log/:month/statement.note", async (ask, caller) => {
    const note = await statementNote(noting, monthOf(ask, caller));
    return answerText(note, "text/plain; charset=utf-8");
  });

  router.guarded("GET /v1/months/:log/:month/statement.html", async (ask, caller) => {
    const { time_zone } = parsed(StatementSearch, ask.query());
    const stated = await readStatementOf(reading, monthOf(ask, caller));
    const { html, policy } = months.page(stated, time_zone);
    const response = answerText(html, "text/html; charset=utf-8");
    response.headers.set("content-security-policy", policy);
    response.headers.set("x-content-type-options", "nosniff");
    response.headers.set("referrer-policy", "no-referrer");
    return response;
  });

  router.guarded("GET /v1/months/:log/:month/allocations", async (ask, caller) => {
    const { after } = parsed(AllocationSearch, ask.query());
    return answer(200, await allocationsOf(reading, monthOf(ask, caller), after));
  });

  router.guarded("GET /v1/months/:log/:month/packs", async (ask, caller) => {
    const { after } = parsed(PackRollSearch, ask.query());
    return answer(200, await packRollsOf(reading, monthOf(ask, caller), after));
  });
}

/** The path's month of its log. @throws Problem `not-found` for what cannot be one */
function monthOf(ask: Ask, caller: Caller): OfMonth {
  return { log: logOf(ask, caller), month: member(MonthText, ask.param("month")) };
}

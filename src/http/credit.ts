/** Credit runs, and what another card would have charged. */
import { IntegerText } from "../core/unit.ts";
import { applyRun } from "../flow/credit/apply.ts";
import { askReversal, askRun, NewCreditRun, NewReversal } from "../flow/credit/ask.ts";
import { NewCreditPreview, preview } from "../flow/credit/preview.ts";
import { shownPreview, showRun, showRuns } from "../flow/credit/show.ts";
import { NamespaceLines, uploadNamespaces } from "../flow/credit/upload.ts";
import { WhatIf, whatIf } from "../flow/money/what-if.ts";
import type { Caller } from "./access.ts";
import { answer } from "./answer.ts";
import type { Services } from "./app.ts";
import { parsed, readJson } from "./body.ts";
import { CreditRunSearch } from "./operations/shapes.ts";
import { logOf, member } from "./path.ts";
import { answerProposed, askerOf } from "./proposals.ts";
import type { Ask, Router } from "./router.ts";

/** 100,000 numbers of 19 digits, each with its newline as JSON writes it. */
const LIST_BYTES_MAX = 2_200_000;
/** What is left is applied beside requests, or when it is asked for again. */
const APPLY_MS = 5_000;

export function creditRoutes(router: Router, { control, reading }: Services): void {
  const { clock } = control.quota;
  const crediting = { ...control, clock };

  router.guarded("POST /v1/logs/:log/namespace_lists", async (ask, caller) => {
    const log = logOf(ask, caller);
    const lines = await readJson(ask, NamespaceLines, LIST_BYTES_MAX);
    return answer(201, await uploadNamespaces(control, log, lines));
  });

  router.guarded("POST /v1/logs/:log/credit_previews", async (ask, caller) => {
    const log = logOf(ask, caller);
    const input = await readJson(ask, NewCreditPreview);
    return answer(201, shownPreview(await preview(crediting, log, input)));
  });

  router.guarded("POST /v1/logs/:log/credit_runs", async (ask, caller) => {
    const log = logOf(ask, caller);
    const input = await readJson(ask, NewCreditRun);
    return answerProposed(log, await askRun(crediting, { log, ...askerOf(caller) }, input));
  });

  router.guarded("POST /v1/logs/:log/credit_runs/:index/reverse", async (ask, caller) => {
    const { log, index } = runOf(ask, caller);
    const cause = await readJson(ask, NewReversal);
    const place = { log, ...askerOf(caller) };
    return answerProposed(log, await askReversal(crediting, place, index, cause));
  });

  router.guarded("POST /v1/logs/:log/credit_runs/:index/apply", async (ask, caller) => {
    const place = runOf(ask, caller);
    const until = clock.now() + APPLY_MS;
    const { lines, written } = await applyRun(crediting, place, () => clock.now() < until);
    return answer(200, { lines: String(lines), written: String(written) });
  });

  router.guarded("GET /v1/logs/:log/credit_runs", async (ask, caller) => {
    const log = logOf(ask, caller);
    const { before } = parsed(CreditRunSearch, ask.query());
    const from = before === undefined ? {} : { below: BigInt(before) };
    return answer(200, await showRuns(reading, { log, ...from }));
  });

  router.guarded("GET /v1/logs/:log/credit_runs/:index", async (ask, caller) => {
    return answer(200, await showRun(reading, runOf(ask, caller)));
  });

  router.guarded("POST /v1/logs/:log/what_if", async (ask, caller) => {
    const log = logOf(ask, caller);
    return answer(200, await whatIf(reading, log, await readJson(ask, WhatIf)));
  });
}

function runOf(ask: Ask, caller: Caller): { log: string; index: bigint } {
  return { log: logOf(ask, caller), index: BigInt(member(IntegerText, ask.param("index"))) };
}

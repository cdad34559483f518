/** The directory of names, which is beside the log: told and erased. */
import { erase } from "../flow/names/erase.ts";
import { NamedId, NewNames, nameAll } from "../flow/names/put.ts";
import { answer } from "./answer.ts";
import type { Services } from "./app.ts";
import { readJson } from "./body.ts";
import { logOf, member } from "./path.ts";
import type { Router } from "./router.ts";

/** 1,000 names of a kilobyte, and what JSON needs around them. */
const NAMES_BYTES_MAX = 1_200_000;

export function nameRoutes(router: Router, { exports }: Services): void {
  router.guarded("PUT /v1/names/:log", async (ask, caller) => {
    const log = logOf(ask, caller);
    return answer(200, await nameAll(exports, log, await readJson(ask, NewNames, NAMES_BYTES_MAX)));
  });

  router.guarded("DELETE /v1/names/:log/:kind/:id", async (ask, caller) => {
    const log = logOf(ask, caller);
    const of = member(NamedId, { kind: ask.param("kind"), id: ask.param("id") });
    return answer(200, await erase(exports, { log, ...of }));
  });
}

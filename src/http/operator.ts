/** Logs, enrolments and the end of keys. */
import { Kid } from "../core/unit.ts";
import { enrol } from "../flow/key/enrol.ts";
import { identify } from "../flow/key/identify.ts";
import { changeLogKey, NewLogKey, showLogKeys } from "../flow/key/log-key.ts";
import { revoke } from "../flow/key/revoke.ts";
import { create, NewLog } from "../flow/log/create.ts";
import { showKeys, showLogs } from "../flow/usage/show.ts";
import { assertAllLogs, assertLog, seesLog } from "./access.ts";
import { answer, answerReceipt } from "./answer.ts";
import type { Services } from "./app.ts";
import { readJson } from "./body.ts";
import { LogEnrolment, LogRevocation } from "./operations/shapes.ts";
import { logOf, member, pageOf } from "./path.ts";
import type { Router } from "./router.ts";

export function operatorRoutes(router: Router, { flow, reading }: Services): void {
  router.guarded("POST /v1/logs", async (ask, caller) => {
    assertAllLogs(caller);
    const { log, ...receipt } = await create(flow, caller.id, await readJson(ask, NewLog));
    const [identity] = await identify(flow.keyring, [log]);
    return answerReceipt(receipt, { log, ...identity });
  });

  router.guarded("GET /v1/logs", async (_, caller) => {
    const logs = (await showLogs(reading)).filter(({ log }) => seesLog(caller, log));
    const identities = await identify(
      flow.keyring,
      logs.map(({ log }) => log),
    );
    return answer(200, { logs: logs.map((shown, i) => ({ ...shown, ...identities[i] })) });
  });

  router.guarded("POST /v1/enrolments", async (ask, caller) => {
    const { log, ...enrolment } = await readJson(ask, LogEnrolment);
    assertLog(caller, log);
    const enrolled = await enrol(flow, log, caller.id, enrolment);
    const { token, claim_until } = enrolled;
    return answerReceipt(enrolled, { log, token, claim_until });
  });

  router.guarded("POST /v1/keys/:kid/revoke", async (ask, caller) => {
    const kid = member(Kid, ask.param("kid"));
    const { log, ...revocation } = await readJson(ask, LogRevocation);
    assertLog(caller, log);
    return answerReceipt(await revoke(flow, { log, kid, by: caller.id }, revocation), { log, kid });
  });

  router.guarded("POST /v1/logs/:log/log_keys", async (ask, caller) => {
    const log = logOf(ask, caller);
    const input = await readJson(ask, NewLogKey);
    return answerReceipt(await changeLogKey(flow, { log, by: caller.id }, input), input);
  });

  router.guarded("GET /v1/logs/:log/log_keys", async (ask, caller) => {
    return answer(200, await showLogKeys({ ...flow, ...reading }, logOf(ask, caller)));
  });

  router.guarded("GET /v1/logs/:log/keys", async (ask, caller) => {
    const log = logOf(ask, caller);
    const { items, ...rest } = await showKeys(reading, { log, ...pageOf(ask) });
    return answer(200, { ...rest, keys: items });
  });
}

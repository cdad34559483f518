/** What two persons decide about, and what sources say of their own events. */
import { IntegerText } from "../core/unit.ts";
import { approve } from "../flow/control/approve.ts";
import { countSource, SourceCount } from "../flow/control/count-source.ts";
import { Ending, refuse, withdraw } from "../flow/control/end.ts";
import { type Asker, type Proposed, propose } from "../flow/control/propose.ts";
import { showProposal, showProposals } from "../flow/control/show.ts";
import { assertLog, type Caller, isPerson } from "./access.ts";
import { answer, answerReceipt } from "./answer.ts";
import type { Services } from "./app.ts";
import { parsed, readJson } from "./body.ts";
import { IdToken, LogProposal, ProposalSearch } from "./operations/shapes.ts";
import { logOf, member } from "./path.ts";
import type { Ask, Router } from "./router.ts";

export function proposalRoutes(router: Router, { control, reading }: Services): void {
  router.guarded("POST /v1/proposals", async (ask, caller) => {
    const { log, ...input } = await readJson(ask, LogProposal);
    assertLog(caller, log);
    return answerProposed(log, await propose(control, { log, ...askerOf(caller) }, input));
  });

  router.guarded("GET /v1/proposals", async (ask, caller) => {
    const { before, ...search } = parsed(ProposalSearch, ask.query());
    assertLog(caller, search.log);
    const from = before === undefined ? {} : { before: BigInt(before) };
    return answer(200, await showProposals(reading, { ...search, ...from }));
  });

  router.guarded("GET /v1/proposals/:log/:index", async (ask, caller) => {
    return answer(200, await showProposal(reading, placeOf(ask, caller)));
  });

  router.guarded("POST /v1/proposals/:log/:index/approval", async (ask, caller) => {
    const place = placeOf(ask, caller);
    const { id_token } = await readJson(ask, IdToken);
    const approved = await approve(control, { ...place, ...askerOf(caller) }, id_token);
    const { action, approval } = approved;
    return answerReceipt(approved, { log: place.log, action, approval });
  });

  router.guarded("POST /v1/proposals/:log/:index/refusal", async (ask, caller) => {
    const place = { ...placeOf(ask, caller), by: caller.id };
    return answerReceipt(await refuse(control, place, await readJson(ask, Ending)));
  });

  router.guarded("POST /v1/proposals/:log/:index/withdrawal", async (ask, caller) => {
    const place = { ...placeOf(ask, caller), by: caller.id };
    return answerReceipt(await withdraw(control, place, await readJson(ask, Ending)));
  });

  router.guarded("POST /v1/logs/:log/source_counts", async (ask, caller) => {
    const log = logOf(ask, caller);
    const input = await readJson(ask, SourceCount);
    const asker = { log, by: caller.id, isPerson: await isPerson(caller, log) };
    const said = await countSource(control, asker, input);
    const { stated, counted, ...receipt } = said;
    return answerReceipt(receipt, { log, stated, counted });
  });
}

export function answerProposed(log: string, proposed: Proposed): Response {
  const { at: _, index: __, leaf: ___, written: ____, ...members } = proposed;
  return answerReceipt(proposed, { log, ...members });
}

export function askerOf({ id, issuer, subject }: Caller): Asker {
  return { by: id, person: { issuer, subject } };
}

/** The path's proposal. @throws Problem `not-found` for a log that the caller may not see */
function placeOf(ask: Ask, caller: Caller): { log: string; index: bigint } {
  return { log: logOf(ask, caller), index: BigInt(member(IntegerText, ask.param("index"))) };
}

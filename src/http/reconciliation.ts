/** What platforms say of their jobs, and what comes of it. */
import type { IncomingMessage } from "node:http";
import { Problem } from "../core/problem.ts";
import { IntegerText, LogId } from "../core/unit.ts";
import { assignBreak, NewOwner } from "../flow/reconcile/assign.ts";
import { completeness } from "../flow/reconcile/completeness.ts";
import type { Covering } from "../flow/reconcile/cover.ts";
import { assertHookSecret, type HookSecrets, hearHook } from "../flow/reconcile/hook.ts";
import type { Lookback } from "../flow/reconcile/lookback.ts";
import { showAwaiting, showBreaks } from "../flow/reconcile/show.ts";
import type { Taking } from "../flow/reconcile/take.ts";
import { UPLOADED_MAX, Upload, upload } from "../flow/reconcile/upload.ts";
import { isPerson, visibleNamespaces } from "./access.ts";
import { answer, answerReceipt } from "./answer.ts";
import type { Services } from "./app.ts";
import {
  assertCount,
  mediaType,
  parsed,
  parseStrict,
  readJson,
  readText,
  type Unread,
} from "./body.ts";
import { BreakSearch, CompletenessSearch } from "./operations/shapes.ts";
import { logOf, member, pageOf } from "./path.ts";
import type { Router } from "./router.ts";

export type Reconciliation = Taking & Covering & Lookback & { secrets: HookSecrets };

/** A commit's message is in an event, and may be of any length. */
const HOOK_BYTES_MAX = 1024 * 1024;
const UPLOAD_BYTES_MAX = 1024 * 1024;
const NDJSON = /^application\/x-ndjson(?:\s*;\s*charset=utf-8)?$/i;

export function reconciliationRoutes(router: Router, services: Services): void {
  const { flow, reading, reconciliation } = services;
  const { lookbackMs, monthLookbackMs } = reconciliation;

  router.open("POST /webhooks/gitlab/:log", async (ask) => {
    if (mediaType(ask.incoming) !== "json") throw new Problem("unsupported-media-type");
    const log = LogId.safeParse(ask.param("log")).data ?? "";
    // Before its body is read: whoever has no secret costs nothing.
    assertHookSecret(reconciliation.secrets, log, header(ask.incoming, "x-gitlab-token"));
    const event = header(ask.incoming, "x-gitlab-event");
    const text = await readText(ask, HOOK_BYTES_MAX);
    return answer(200, { log, kept: await hearHook(reconciliation, log, { event, text }) });
  });

  router.guarded("POST /v1/logs/:log/platform_jobs", async (ask, caller) => {
    const log = logOf(ask, caller);
    const asker = { log, by: caller.id, isPerson: await isPerson(caller, log) };
    return answer(200, await upload(reconciliation, asker, await readUpload(ask)));
  });

  router.guarded("GET /v1/logs/:log/breaks", async (ask, caller) => {
    const log = logOf(ask, caller);
    const { before, state } = parsed(BreakSearch, ask.query());
    const from = before === undefined ? {} : { before: BigInt(before) };
    return answer(200, await showBreaks(reading, { log, state, ...from }));
  });

  router.guarded("POST /v1/logs/:log/breaks/:index/owner", async (ask, caller) => {
    const log = logOf(ask, caller);
    const index = BigInt(member(IntegerText, ask.param("index")));
    const input = await readJson(ask, NewOwner);
    return answerReceipt(await assignBreak(flow, { log, index, by: caller.id }, input));
  });

  router.guarded("GET /v1/logs/:log/completeness", async (ask, caller) => {
    const log = logOf(ask, caller);
    const { day } = parsed(CompletenessSearch, ask.query());
    const looking = { ...reading, lookbackMs, monthLookbackMs };
    return answer(200, await completeness(looking, log, day));
  });

  router.guarded("GET /v1/logs/:log/awaiting", async (ask, caller) => {
    const log = logOf(ask, caller);
    const search = { log, visible: visibleNamespaces(caller, log), ...pageOf(ask) };
    return answer(200, await showAwaiting(reading, search));
  });
}

function header({ headers }: IncomingMessage, name: string): string {
  const value = headers[name];
  return typeof value === "string" ? value : "";
}

/** One document, or a job on each line. */
async function readUpload(unread: Unread): Promise<Upload> {
  const { headers } = unread.incoming;
  const isLines = NDJSON.test(headers["content-type"] ?? "") && !headers["content-encoding"];
  if (!isLines && mediaType(unread.incoming) !== "json") {
    throw new Problem("unsupported-media-type");
  }
  const text = await readText(unread, UPLOAD_BYTES_MAX);
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  if (isLines && lines.length > UPLOADED_MAX) throw new Problem("too-many");
  const value = isLines ? { jobs: lines.map((line) => parseStrict(line)) } : parseStrict(text);
  assertCount(value, "jobs", UPLOADED_MAX);
  return parsed(Upload, value);
}

/** The hot path: signed reports, one or up to 500 at a time. */
import { HOLD_CODES } from "../core/entry.ts";
import { PROBLEMS, type ProblemCode } from "../core/problem.ts";
import type { Ingested, Result } from "../flow/report/ingest.ts";
import {
  assertCount,
  BATCH_LETTERS_MAX,
  mediaType,
  parsed,
  parseStrict,
  readText,
  type Unread,
} from "./body.ts";
import { REPORTS_MAX, Reports } from "./operations/shapes.ts";
import { problemDocument, respond } from "./problem.ts";

const REPORTS_BYTES_MAX = 4 * 1024 * 1024;
const JSON_HEADERS = { "content-type": "application/json", "cache-control": "no-store" };

export type Ingest = (texts: readonly string[]) => Promise<Ingested>;

/** One JWS is answered by its own status (BYTES §3), a batch by 200 and a result for each. */
export async function answerReports(unread: Unread, ingest: Ingest): Promise<Response> {
  const single = mediaType(unread.incoming) === "jose";
  const body = await readText(unread, REPORTS_BYTES_MAX);
  const ingested = await ingest(single ? [body] : readBatch(body));
  return single
    ? answerOne(ingested)
    : new Response(JSON.stringify(ingested), { headers: JSON_HEADERS });
}

function readBatch(text: string): readonly string[] {
  const value = parseStrict(text, BATCH_LETTERS_MAX);
  assertCount(value, "reports", REPORTS_MAX);
  return parsed(Reports, value).reports;
}

function answerOne({ log, receipt, results: [result] }: Ingested): Response {
  if (result === undefined) throw new Error("reports: one report without its result");
  const { code, ...members } = result;
  const signed = receipt === undefined ? {} : { receipt };
  // A text that proves nothing names no log.
  const named = log === "" ? members : { log, ...members, ...signed };
  if (isProblem(code)) return respond(problemDocument(code, named));
  const answer = JSON.stringify({ log, ...result, ...signed });
  return new Response(answer, { status: statusOf(code), headers: JSON_HEADERS });
}

function isProblem(code: Result["code"]): code is ProblemCode {
  return Object.hasOwn(PROBLEMS, code);
}

function statusOf(code: Exclude<Result["code"], ProblemCode>): 200 | 201 | 202 {
  if (code === "accepted") return 201;
  return HOLD_CODES.some((hold) => hold === code) ? 202 : 200;
}

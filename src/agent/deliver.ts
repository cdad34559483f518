/** Sends a spool in the order of its counters, for as long as it takes. */
import { z } from "zod";
import { JWS_CHARS_MAX } from "../core/body.ts";
import { HOLD_CODES } from "../core/entry.ts";
import { ReceiptResult } from "../core/receipt.ts";
import { LogId } from "../core/unit.ts";
import { type Answer, type Client, parseAnswer, refusal } from "./client.ts";
import { AgentError } from "./failure.ts";
import { digestOf } from "./promise.ts";
import type { Spool } from "./spool.ts";
import { Result } from "./spool-record.ts";

/** What the service takes in one request. */
export const BATCH_MAX = 500;
export const BATCH_DEFAULT = 100;

export interface Delivery {
  log: string;
  spool: Spool;
  client: Client;
}

export const OUTCOMES = ["accepted", "duplicate", "conflict", "held", "refused"] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** New members are let pass, unlike in what is signed: a service may be newer than its agents. */
const Results = z.object({
  /** Empty when no report of the request proved which log it is for. */
  log: z.union([LogId, z.literal("")]),
  results: z.array(z.preprocess(withoutOthers, Result)),
  /** Whatever it is, the answer stands: it is judged when the log is held to it. */
  receipt: z.unknown().optional(),
});

/** What one request was answered; of a batch that had to be halved there are several. */
interface Answered {
  results: Result[];
  receipt?: string;
}

const HELD: ReadonlySet<string> = new Set(HOLD_CODES);
/** Not the report's fault: taken for its answer, they would lose it. */
const NOT_FINAL = new Set(["unknown-key", "busy", "log-behind", "archive-unavailable"]);
const TOO_LARGE = 413;

/**
 * First what has no final answer, then what is to be sent once more.
 * @param batch reports in one request, 1 … 500
 * @param onAnswers called when the answers are durable
 * @throws AgentError `refused`, `protocol`; all that has no answer in the spool is sent again next time
 */
export async function deliver(
  delivery: Delivery,
  batch: number,
  onAnswers: (outcomes: Outcome[]) => void,
): Promise<void> {
  const { spool } = delivery;
  for (const reports of batches(spool.pending(), batch)) {
    await deliverBatch(delivery, reports, undefined, onAnswers);
  }
  for (const range of spool.again) {
    let [first] = range;
    for (const reports of batches(spool.texts(range), batch)) {
      await deliverBatch(delivery, reports, first, onAnswers);
      first += reports.length;
    }
  }
}

/** Codes that a later service invents count as refusals here, and as no answer where the log is held to it. */
export function outcomeOf(code: string): Outcome {
  if (HELD.has(code)) return "held";
  return OUTCOMES.find((outcome) => outcome === code) ?? "refused";
}

/** @param first place of the first report, if they are sent once more */
async function deliverBatch(
  { log, spool, client }: Delivery,
  reports: string[],
  first: number | undefined,
  onAnswers: (outcomes: Outcome[]) => void,
): Promise<void> {
  let next = first;
  for (const answer of await send(client, log, reports)) {
    const { results } = answer;
    spool.answer({ ...answer, at: client.now(), ...(next !== undefined && { first: next }) });
    if (next !== undefined) next += results.length;
    onAnswers(results.map(({ code }) => outcomeOf(code)));
  }
}

async function send(client: Client, log: string, reports: string[]): Promise<Answered[]> {
  const body = JSON.stringify({ reports });
  const answer = await client.request("v1/reports", { type: "application/json", body });
  if (answer.status === 200) return [readResults(client, log, reports, answer)];
  if (answer.status !== TOO_LARGE || reports.length === 1) {
    throw refusal(client, `${reports.length} reports`, answer);
  }
  // Something in between has a smaller limit than the service: half as much may pass.
  const half = Math.ceil(reports.length / 2);
  const first = await send(client, log, reports.slice(0, half));
  return [...first, ...(await send(client, log, reports.slice(half)))];
}

function readResults(client: Client, log: string, reports: string[], answer: Answer): Answered {
  const { results, log: answered, receipt } = parseAnswer(Results, client, answer);
  const fits =
    (answered === log || answered === "") &&
    results.length === reports.length &&
    results.every(({ digest }, i) => digest === digestOf(reports[i] ?? ""));
  if (!fits) {
    throw new AgentError("protocol", `${client.server} answered for other reports than were sent.`);
  }
  const bad = results.find(({ code }) => NOT_FINAL.has(code));
  if (bad !== undefined) {
    const message = `${client.server} did not judge the reports (${bad.code}). They are kept.`;
    throw new AgentError("refused", message);
  }
  return receipt === undefined ? { results } : { results, receipt: receiptText(receipt) };
}

/** Also of what is no receipt, as far as one could reach: it is evidence. */
function receiptText(receipt: unknown): string {
  const text = typeof receipt === "string" ? receipt : JSON.stringify(receipt);
  return text.slice(0, JWS_CHARS_MAX);
}

/** What no receipt can be over is not kept: numbers, say, which could come back longer than they came. */
function withoutOthers(result: unknown): unknown {
  if (typeof result !== "object" || result === null) return result;
  const members = Object.entries(result);
  return Object.fromEntries(
    members.filter(
      ([name, value]) => Object.hasOwn(ReceiptResult.shape, name) || typeof value === "string",
    ),
  );
}

function* batches(reports: Iterable<string>, size: number): Generator<string[]> {
  let batch: string[] = [];
  for (const report of reports) {
    batch.push(report);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

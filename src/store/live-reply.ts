/** What goes to the script and comes back from it: texts, in the order that live-script.ts gives. */
import { createHash } from "node:crypto";
import type { Figures } from "../core/quota/figures.ts";
import { endOfStep, RESERVED_STEP_MS, STEP_MS } from "../core/quota/jobs.ts";
import {
  type Answer,
  type Ask,
  byJob,
  type Command,
  checkCommand,
  type Done,
  type LiveJob,
  type Result,
} from "../core/quota/live.ts";

/** 132 bits, so that no two bodies share theirs. */
const PRINT_LENGTH = 22;
const HEAD = /^(-?\d+),(-?\d+),(-?\d+),(-?\d*),(-?\d*)\n/;
const JOB = /^([rn]),(\d+),(\d+),(\d+),(\d+),(\d+),(-?\d+)$/;

/**
 * @param options.withBody the figures' body goes along, as it always does where nothing is asked about a job: who
 *   compares puts right what was spoilt
 * @throws Error as `checkCommand`
 */
export function writeCommand(command: Command, options: { withBody: boolean }): string[] {
  checkCommand(command);
  const { asks, figures, looked = [], now, settled, since } = command;
  const { body, words } = writtenOf(figures);
  const withBody = options.withBody || !asks.some(isAsked);
  const hasMore = withBody || settled.length > 0 || looked.length > 0;
  let text = `${now} ${words} ${since} ${flagsOf(command, hasMore)}`;
  for (const ask of asks) text += writeAsk(ask, now);
  return hasMore ? [text, withBody ? body : "", settled.join(), looked.join()] : [text];
}

function flagsOf({ force, inspect, recount }: Command, hasMore: boolean): string {
  const flags = `${hasMore ? "m" : ""}${force ? "f" : ""}${inspect ? "i" : ""}${recount ? "r" : ""}`;
  return flags || ".";
}

function isAsked({ kind }: Ask): boolean {
  return kind === "start" || kind === "run" || kind === "go_on";
}

interface Written {
  body: string;
  /** asOf, the body's print, both bounds. */
  words: string;
}

/** Figures are said far more often than they are made. */
const written = new WeakMap<Figures, Written>();

/** Of figures that only became newer the print stays, and takes longer than all else here. */
const prints = new Map<string, { body: string; print: string }>();
const PRINTS_MAX = 10_000;

function printOf(text: string, body: string): string {
  const known = prints.get(text);
  if (known?.body === body) return known.print;
  const print = createHash("sha256").update(body).digest("base64url").slice(0, PRINT_LENGTH);
  if (prints.size >= PRINTS_MAX) prints.clear();
  prints.set(text, { body, print });
  return print;
}

function writtenOf(figures: Figures): Written {
  const known = written.get(figures);
  if (known !== undefined) return known;
  const { asOf, touched, from, until, startBound, runBound, text } = figures;
  const body = `${touched},${from},${until},${startBound ?? ""},${runBound ?? ""}\n${text}`;
  const print = printOf(text, body);
  const made = { body, words: `${asOf} ${print} ${startBound ?? "."} ${runBound ?? "."}` };
  written.set(figures, made);
  return made;
}

function writeAsk(ask: Ask, now: number): string {
  const { job } = ask;
  switch (ask.kind) {
    case "start":
      return ` s ${job} ${endOf(ask.until, now, RESERVED_STEP_MS)} ${ask.floor}`;
    case "run": {
      const end = endOf(ask.until, now, STEP_MS);
      return ` ${ask.offered ? "o" : "r"} ${job} ${end} ${ask.amount} ${ask.elapsedMs} ${ask.by}`;
    }
    case "go_on":
      return ` g ${job}`;
    case "never_ran":
      return ` n ${job}`;
    case "revoked":
      return ` v ${job} ${ask.by}`;
  }
}

function endOf(until: number, now: number, step: number): string {
  return until > now ? String(endOfStep(until, step)) : "0";
}

/** @throws Error on anything that the script does not say */
export function readReply(command: Command, reply: unknown): Answer {
  if (typeof reply === "string") return readDone(command.figures, reply);
  if (!Array.isArray(reply)) throw new Error("live: not a reply of the script");
  const [kind, ...words] = reply;
  if (kind === "d") return readWhole(command, words);
  if (!isTexts(words)) throw new Error("live: not a reply of the script");
  const [asOf = "", ...jobs] = words;
  return kind === "b"
    ? { kind: "behind", asOf: BigInt(asOf) }
    : { kind: "gap", asOf: BigInt(asOf), jobs: jobs.sort() };
}

function readWhole({ figures: own, inspect }: Command, words: readonly unknown[]): Done {
  const [fields, ...texts] = words.toReversed();
  if (!isTexts(fields) || !isTexts(texts)) throw new Error("live: not a reply of the script");
  const [body = "", asOf = "", text = ""] = texts;
  const figures = asOf === "" ? own : readKept(own, asOf, body);
  return { ...readDone(figures, text), ...(inspect && { jobs: readJobs(fields) }) };
}

function isTexts(reply: unknown): reply is string[] {
  return Array.isArray(reply) && reply.every((each) => typeof each === "string");
}

function readDone(figures: Figures, text: string): Done {
  const [live = "", held = "", digits] = text.split(",");
  if (digits === undefined) throw new Error("live: not an answer of the script");
  const sum = BigInt(live);
  const results = digits.length === 1 ? [readResult(digits)] : Array.from(digits, readResult);
  return { kind: "done", figures, live: sum, reserved: BigInt(held) - sum, results };
}

const RESULTS: readonly Result[] = [0, 1, 2, 3].map((digit) => ({
  allowed: digit % 2 === 1,
  known: digit > 1,
}));

function readResult(digit: string): Result {
  const result = RESULTS[Number(digit)];
  if (result === undefined) throw new Error("live: not an answer of the script");
  return result;
}

/** Nothing: the same as the caller's. */
function readKept(own: Figures, asOf: string, body: string): Figures {
  if (body === "") return { ...own, asOf: BigInt(asOf) };
  const [head = "", touched = "", from, until, startBound, runBound] = HEAD.exec(body) ?? [];
  if (head === "") throw new Error("live: not figures of the script");
  return {
    asOf: BigInt(asOf),
    touched: BigInt(touched),
    from: Number(from),
    until: Number(until),
    startBound: readBound(startBound),
    runBound: readBound(runBound),
    readAt: own.readAt,
    text: body.slice(head.length),
  };
}

function readBound(text: string | undefined): bigint | undefined {
  return text === undefined || text === "" ? undefined : BigInt(text);
}

/** Those that are gone are no part of an answer. */
function readJobs(fields: readonly string[]): LiveJob[] {
  const jobs: LiveJob[] = [];
  for (let i = 0; i < fields.length; i += 2) {
    const [job = "", text = ""] = fields.slice(i, i + 2);
    const [, kind, until, heardAt, elapsed = "", amount = "", floor = "", by = ""] =
      JOB.exec(text) ?? [];
    if (kind === undefined) continue;
    jobs.push({
      job,
      kind: kind === "r" ? "reserved" : "running",
      amount: BigInt(amount),
      floor: BigInt(floor),
      elapsedMs: BigInt(elapsed),
      heardAt: Number(heardAt),
      until: Number(until),
      by: BigInt(by),
    });
  }
  return jobs.sort(byJob);
}

/** What goes to the script and comes back from it: texts, in the order that live-script.ts gives. */
import type { Figures } from "../core/quota/figures.ts";
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

const HEAD = /^(-?\d+),(-?\d+),(-?\d+),(-?\d*),(-?\d*)\n/;
const JOB = /^([rn]),(\d+),(\d+),(\d+),(\d+),(\d+),(-?\d+)$/;

/** @throws Error as `checkCommand` */
export function writeCommand(command: Command): string[] {
  checkCommand(command);
  const { figures } = command;
  const args = [
    String(command.now),
    String(figures.asOf),
    writeBody(figures),
    String(figures.startBound ?? ""),
    String(figures.runBound ?? ""),
    String(command.since),
    command.settled.join(),
    command.looked?.join() ?? "",
    `${command.force ? "f" : ""}${command.inspect ? "i" : ""}${command.recount ? "r" : ""}`,
  ];
  for (const ask of command.asks) pushAsk(args, ask);
  return args;
}

function writeBody({ touched, from, until, startBound, runBound, text }: Figures): string {
  return `${touched},${from},${until},${startBound ?? ""},${runBound ?? ""}\n${text}`;
}

function pushAsk(args: string[], ask: Ask): void {
  switch (ask.kind) {
    case "start":
      args.push("s", ask.job, String(ask.until), String(ask.floor));
      break;
    case "run":
      args.push("r", ask.job, String(ask.until), String(ask.amount), String(ask.elapsedMs));
      args.push(String(ask.by), ask.offered ? "o" : "");
      break;
    case "go_on":
      args.push("g", ask.job);
      break;
    case "never_ran":
      args.push("n", ask.job);
      break;
    case "revoked":
      args.push("v", ask.job, String(ask.by));
  }
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
  const figures = asOf === "" ? own : readKept(asOf, own.readAt, body);
  return { ...readDone(figures, text), ...(inspect && { jobs: readJobs(fields) }) };
}

function isTexts(reply: unknown): reply is string[] {
  return Array.isArray(reply) && reply.every((each) => typeof each === "string");
}

function readDone(figures: Figures, text: string): Done {
  const [live = "", held = "", digits] = text.split(",");
  if (digits === undefined) throw new Error("live: not an answer of the script");
  const sum = BigInt(live);
  const results = Array.from(digits, readResult);
  return { kind: "done", figures, live: sum, reserved: BigInt(held) - sum, results };
}

function readResult(digit: string): Result {
  return { allowed: digit === "1" || digit === "3", known: digit === "2" || digit === "3" };
}

function readKept(asOf: string, readAt: number, body: string): Figures {
  const [head = "", touched = "", from, until, startBound, runBound] = HEAD.exec(body) ?? [];
  if (head === "") throw new Error("live: not figures of the script");
  return {
    asOf: BigInt(asOf),
    touched: BigInt(touched),
    from: Number(from),
    until: Number(until),
    startBound: readBound(startBound),
    runBound: readBound(runBound),
    readAt,
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

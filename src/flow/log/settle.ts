/**
 * One batch, settled under the head lock: which report becomes which entry, and what each is answered
 * (BYTES §3). Pure but for salts: all that the database knew was read before.
 */
import { DISPOSITION_LINES_MAX, type DispositionLine, type HoldCode } from "../../core/entry.ts";
import type { Hash, Sha256 } from "../../core/hash.ts";
import type { Judgement } from "../../core/judge.ts";
import type { ProblemCode } from "../../core/problem.ts";
import { encodeBase64, equal } from "../../core/text.ts";
import { usageColumns } from "../../core/typed.ts";
import type { Tracking } from "../../core/unit.ts";
import type { NewEntry } from "../../store/entries.ts";
import type { Head } from "../../store/heads.ts";
import type { Job, StandingJob } from "../../store/jobs.ts";
import type { Answer, RecordedAnswer, StandingAnswer } from "../../store/reports.ts";
import type { Random } from "../clock.ts";
import type { Refused } from "../report/examine.ts";
import type { SignedReport } from "../report/verify.ts";
import { Chain, salt } from "./chain.ts";

export type ReportCode = "accepted" | "duplicate" | "conflict" | HoldCode | ProblemCode;

/** `index` and `leaf` where an entry answers the report. */
export interface Outcome {
  code: ReportCode;
  index?: bigint;
  leaf?: Hash;
}

/** A signed text without a report in it, whose counter could be read all the same. */
export type Unfit = Refused & { kid: string; counter: string };

/** What a log can account for. */
export type Fit = SignedReport | Unfit;

/** What goes into a batch. */
export type Candidate =
  /** `tracking` is where the job is looked up, if its runner is known. */
  | {
      kind: "report";
      verdict: SignedReport;
      tracking: Tracking | undefined;
      judgement: Judgement;
    }
  | { kind: "unfit"; verdict: Unfit }
  /** Its key stood on the log once, and was lost with a tail that nobody had archived. */
  | { kind: "stranger"; verdict: Fit };

export interface Known {
  jobs: readonly StandingJob[];
  reports: readonly StandingAnswer[];
}

/** All that the transaction is to write, and then to answer. */
export interface Settlement {
  entries: NewEntry[];
  jobs: Job[];
  reports: RecordedAnswer[];
  outcomes: Outcome[];
  head: Head;
}

interface Context {
  log: string;
  head: Head;
  /** `at` of every entry of the batch: never before the head's. */
  at: string;
  hash: Sha256;
  random: Random;
}

const STRANGER: Outcome = { code: "unknown-key" };

/** Later reports of the batch see the earlier ones, as if each had been committed by itself. */
export function settle(
  candidates: readonly Candidate[],
  known: Known,
  context: Context,
): Settlement {
  const batch = new Batch(known, context);
  const outcomes = candidates.map((candidate) =>
    candidate.kind === "stranger" ? STRANGER : batch.take(candidate),
  );
  batch.dispose();
  const { answers, chain, jobs } = batch;
  const head = { ...context.head, ...chain.tip };
  return { entries: chain.entries, jobs, reports: answers, outcomes, head };
}

/** `recorded` is left open where a disposition is to account for the report. */
interface Made {
  code: ReportCode;
  index: bigint | undefined;
  leaf: Hash | undefined;
  recorded?: bigint;
}

type Enrolled = Exclude<Candidate, { kind: "stranger" }>;

class Batch {
  readonly chain: Chain;
  readonly jobs: Job[] = [];
  readonly answers: RecordedAnswer[] = [];
  readonly #random: Random;
  readonly #standing = new Map<string, { index: bigint; leaf: Hash; fact: Hash }>();
  readonly #answered = new Map<string, StandingAnswer[]>();
  /** By kid: lines, and the answers that wait for the index of the entry that holds theirs. */
  readonly #lines = new Map<string, { line: DispositionLine; answer?: Answer }[]>();

  constructor(known: Known, context: Context) {
    this.#random = context.random;
    this.chain = new Chain(context.log, context.head, context.at, context.hash);
    for (const job of known.jobs) this.#standing.set(jobKey(job.tracking, job.jobId), job);
    for (const answer of known.reports) this.#remember(answer);
  }

  take(candidate: Enrolled): Outcome {
    const { verdict } = candidate;
    const counter = verdict.kind === "signed" ? verdict.report.counter : verdict.counter;
    const earlier = this.#answered.get(`${verdict.kid} ${counter}`) ?? [];
    const same = earlier.find((answer) => equal(answer.digest, verdict.digest));
    if (same !== undefined) return outcome(same);

    const { kid, digest } = verdict;
    const made = this.#judged(candidate);
    const answer: StandingAnswer = { kid, counter, digest, ...made };
    // A counter that was used on another log says nothing about this one's.
    const reused =
      made.code !== "wrong-log" && earlier.some((answer) => answer.code !== "wrong-log");
    if (made.recorded !== undefined) {
      this.answers.push({ ...answer, recorded: made.recorded });
    } else {
      // A duplicate that also uses its counter again needs no line but the one that says so.
      const code = reused && made.code === "duplicate" ? "counter-reused" : made.code;
      this.#note(kid, { line: lineOf(code, answer), answer });
    }
    if (reused && made.code !== "duplicate") {
      this.#note(kid, { line: lineOf("counter-reused", answer) });
    }
    this.#remember(answer);
    return outcome(answer);
  }

  #judged(candidate: Enrolled): Made {
    if (candidate.kind === "unfit") {
      return { code: candidate.verdict.code, index: undefined, leaf: undefined };
    }
    const { judgement, tracking, verdict } = candidate;
    const { fact, jws, report } = verdict;
    const standing = tracking && this.#standing.get(jobKey(tracking, report.job.id));
    if (standing !== undefined && equal(standing.fact, fact)) {
      return { code: "duplicate", index: standing.index, leaf: standing.leaf };
    }
    if (judgement.kind === "hold") {
      const { code } = judgement;
      return recorded(code, this.chain.append("hold", { code, jws }).stored);
    }
    if (standing !== undefined) {
      const body = { jws, stands: String(standing.index) };
      return recorded("conflict", this.chain.append("conflict", body).stored);
    }
    return recorded("accepted", this.#use(verdict, judgement));
  }

  #use(verdict: SignedReport, { body, runner }: Judgement & { kind: "usage" }): NewEntry {
    const { fact, jws, report } = verdict;
    const { entry, stored } = this.chain.append("usage", { ...body, jws });
    stored.usage = usageColumns(entry, report, BigInt(runner.runner_id));
    const { tracking } = body;
    const { index, leaf } = stored;
    this.jobs.push({ tracking, jobId: report.job.id, index, fact });
    this.#standing.set(jobKey(tracking, report.job.id), { index, leaf, fact });
    return stored;
  }

  /** The lines of each key, counters ascending, in entries behind all others of the batch. */
  dispose(): void {
    for (const [kid, notes] of this.#lines) {
      notes.sort((a, b) => compare(BigInt(a.line.counter), BigInt(b.line.counter)));
      for (let from = 0; from < notes.length; from += DISPOSITION_LINES_MAX) {
        const page = notes.slice(from, from + DISPOSITION_LINES_MAX);
        const lines = page.map((note) => note.line);
        const body = { kid, lines, salt: salt(this.#random) };
        const { index: recorded } = this.chain.append("disposition", body).stored;
        for (const { answer } of page) {
          if (answer !== undefined) this.answers.push({ ...answer, recorded });
        }
      }
    }
  }

  #note(kid: string, note: { line: DispositionLine; answer?: Answer }): void {
    const notes = this.#lines.get(kid);
    if (notes === undefined) this.#lines.set(kid, [note]);
    else notes.push(note);
  }

  #remember(answer: StandingAnswer): void {
    const key = `${answer.kid} ${answer.counter}`;
    const answers = this.#answered.get(key);
    if (answers === undefined) this.#answered.set(key, [answer]);
    else answers.push(answer);
  }
}

function lineOf(code: string, { counter, digest, index }: Answer): DispositionLine {
  return { code, counter, digest: encodeBase64(digest), index: String(index ?? "") };
}

function recorded(code: ReportCode, { index, leaf }: NewEntry): Made {
  return { code, index, leaf, recorded: index };
}

function outcome({ code, index, leaf }: StandingAnswer): Outcome {
  return {
    code: code as ReportCode,
    ...(index !== undefined && { index }),
    ...(leaf !== undefined && { leaf }),
  };
}

/** Trackings hold no space, so no two pairs share a key. */
function jobKey(tracking: string, jobId: string): string {
  return `${tracking} ${jobId}`;
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : Number(a > b);
}

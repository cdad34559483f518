/** Signed reports in, an answer for each out, in the order of the request (BYTES §3). */
import { Problem } from "../../core/problem.ts";
import { encodeBase64 } from "../../core/text.ts";
import type { Pace } from "../access/pace.ts";
import type { Appender } from "../log/append.ts";
import type { Fit, Outcome, ReportCode, Unfit } from "../log/settle.ts";
import type { Directory } from "./directory.ts";
import type { Refused } from "./examine.ts";
import type { Intake } from "./intake.ts";
import type { Receipts } from "./receipt.ts";
import type { Register } from "./register.ts";
import type { Verdict, Verifier } from "./verify.ts";

export interface Ingesting {
  verifier: Verifier;
  appender: Appender;
  directory: Directory;
  register: Register;
  intake: Intake;
  receipts: Receipts;
  /** Of keys; without it nobody is held back. */
  pace?: Pace;
}

/** As it goes over the wire. */
export interface Result {
  code: ReportCode;
  /** SHA-256 of the JWS, base64. */
  digest: string;
  /** Of a signed report. */
  counter?: string;
  /** Of the entry that answers, where there is one, with its leaf hash in base64. */
  index?: string;
  leaf?: string;
}

export interface Ingested {
  /**
   * The log that accounts for the reports; `""` if none of them could be relied on. It is the one that
   * they name if one of their keys is enrolled there, and else where the first of them is noted: of a
   * log that is somebody else's nobody learns even that there is one.
   */
  log: string;
  results: Result[];
  /** Over all results, of that log. */
  receipt?: string;
}

const REPORTS_MAX = 500;

/**
 * @param texts 1 … 500 compact JWS
 * @throws Problem `too-many`, `mixed-logs`; `rate-limited`, `busy`, `log-behind`, `archive-unavailable`,
 *   `signer-unavailable`: of these nothing was answered, and repeating the same bytes is safe
 */
export async function ingest(flow: Ingesting, texts: readonly string[]): Promise<Ingested> {
  if (texts.length > REPORTS_MAX) throw new Problem("too-many");
  const bytes = texts.reduce((sum, text) => sum + text.length, 0);
  const leave = flow.intake.enter(texts.length, bytes);
  try {
    const verdicts = await flow.verifier.verify(texts);
    for (const kid of signersOf(verdicts)) await flow.pace?.(kid);
    const named = theOneLog(verdicts);
    const homes = await homesOf(flow.directory, verdicts);
    // What is noted elsewhere is `wrong-log`, which has no index: a receipt promises entries of one log.
    const log = homes.includes(named) ? named : (homes.find((home) => home !== undefined) ?? "");
    const receipting = log === "" ? undefined : await flow.receipts.open(log);
    const outcomes = await append(flow, verdicts, homes);
    const results = verdicts.map((verdict, i) => resultOf(verdict, outcomes.get(i)));
    const receipt = await receipting?.(results);
    return { log, results, ...(receipt !== undefined && { receipt }) };
  } finally {
    leave();
  }
}

/** Whose signature verified: what anybody can make up must hold back nobody. */
function signersOf(verdicts: readonly Verdict[]): Set<string> {
  const signed = verdicts.filter((verdict) => verdict.kind === "signed" || accountable(verdict));
  return new Set(signed.flatMap(({ kid }) => kid ?? []));
}

/** Only what was signed names a log; a forged text must not be able to spoil its neighbours. */
function theOneLog(verdicts: readonly Verdict[]): string {
  const logs = new Set<string>();
  for (const verdict of verdicts) {
    const log = logOf(verdict);
    if (log !== undefined) logs.add(log);
  }
  if (logs.size > 1) throw new Problem("mixed-logs");
  const [log = ""] = logs;
  return log;
}

/** By position in the request: the log that accounts for it, or would if its counter could be read. */
async function homesOf(
  directory: Directory,
  verdicts: readonly Verdict[],
): Promise<(string | undefined)[]> {
  const homes: (string | undefined)[] = [];
  for (const verdict of verdicts) {
    const log = logOf(verdict);
    const speaks = log !== undefined || (verdict.kind === "refused" && accountable(verdict));
    const home = speaks && verdict.kid !== undefined ? directory.home(verdict.kid, log) : undefined;
    // Nothing is waited for where the key is known.
    homes.push(home instanceof Promise ? await home : home);
  }
  return homes;
}

/** By position in the request: what each log answered. The rest goes to the register. */
async function append(
  { appender, register }: Ingesting,
  verdicts: readonly Verdict[],
  homes: readonly (string | undefined)[],
): Promise<ReadonlyMap<number, Outcome>> {
  const groups = new Map<string, { positions: number[]; fits: Fit[] }>();
  for (const [position, verdict] of verdicts.entries()) {
    if (verdict.kind === "refused" && !accountable(verdict)) {
      register.add(verdict.digest, verdict.code);
      continue;
    }
    const log = homes[position];
    if (log === undefined) throw new Error("ingest: a signed report that no log accounts for");
    const group = groups.get(log) ?? { positions: [], fits: [] };
    group.positions.push(position);
    group.fits.push(fitFor(log, verdict));
    groups.set(log, group);
  }
  const outcomes = new Map<number, Outcome>();
  const answered = Array.from(groups, async ([log, { positions, fits }]) => {
    const answers = await appender.reports(log, fits);
    positions.forEach((position, i) => {
      const answer = answers[i];
      if (answer !== undefined) outcomes.set(position, answer);
    });
  });
  await Promise.all(answered);
  return outcomes;
}

/** Signed, and its counter could be read: a log has to account for it. */
function accountable(verdict: Refused): verdict is Unfit {
  return verdict.kid !== undefined && verdict.counter !== undefined;
}

function logOf(verdict: Verdict): string | undefined {
  return verdict.kind === "signed" ? verdict.report.log : verdict.log;
}

/** A good report of a key that is not enrolled in the log it names is noted where the key is. */
function fitFor(log: string, verdict: Fit): Fit {
  if (verdict.kind === "refused" || verdict.report.log === log) return verdict;
  const { digest, jws, kid, report } = verdict;
  const { counter } = report;
  return { kind: "refused", code: "wrong-log", digest, jws, kid, counter, log: report.log };
}

function resultOf(verdict: Verdict, outcome: Outcome | undefined): Result {
  const counter = verdict.kind === "signed" ? verdict.report.counter : verdict.counter;
  const code = outcome?.code ?? (verdict.kind === "refused" ? verdict.code : undefined);
  if (code === undefined) throw new Error("ingest: a report without an answer");
  return {
    code,
    digest: encodeBase64(verdict.digest),
    ...(counter !== undefined && { counter }),
    ...(outcome?.index !== undefined && { index: String(outcome.index) }),
    ...(outcome?.leaf !== undefined && { leaf: encodeBase64(outcome.leaf) }),
  };
}

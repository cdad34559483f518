/**
 * What runs, said by the runners' agents, and for each job whether it may go on. Judged in the order of
 * reports (BYTES §3), and like an attestation: whoever holds a key that has ended says nothing any more.
 */
import { charge } from "../../core/charge.ts";
import { coveredRunner } from "../../core/judge.ts";
import { readCompact } from "../../core/jws.ts";
import type { KeyState, Prefix } from "../../core/prefix.ts";
import { Problem, type ProblemCode } from "../../core/problem.ts";
import { Heartbeat, type RunningJob } from "../../core/quota/heartbeat.ts";
import { TYP } from "../../core/report.ts";
import { epochMs, instantText, milliseconds } from "../../core/unit.ts";
import type { Pace } from "../access/pace.ts";
import type { Directory } from "../report/directory.ts";
import { type Examined, examine, type Refused } from "../report/examine.ts";
import type { Intake } from "../report/intake.ts";
import {
  answerAll,
  DECISION_AGE_MS,
  type Decision,
  type Posed,
  type Quotaing,
  uncounted,
} from "./decide.ts";
import type { LiveBudget } from "./live-budget.ts";
import { isNothing, liveFactor } from "./live-rate.ts";
import { recentPrefix } from "./recent-prefix.ts";

export interface Hearing {
  quota: Quotaing;
  directory: Directory;
  intake: Intake;
  /** Of keys; without it nobody is held back. */
  pace?: Pace;
}

/** Decisions are in the order of the heartbeat's jobs. */
export interface Heard {
  code: "heard";
  log: string;
  kid: string;
  decisions: Decision[];
}

export interface Unheard {
  code: ProblemCode;
}

/** In one request. */
export const HEARTBEATS_MAX = 500;
/** Signatures between two looks at what else there is to do: two milliseconds of work. */
const AT_ONCE = 16;
/** A job that is silent counts so long beyond its timeout: its report may be on its way. */
const SILENT_MS = 7n * 24n * 60n * 60n * 1_000n;
/** The last whole hour that has a text, in epoch milliseconds: ends are whole hours. */
const TIME_MAX = 253_402_297_200_000n;

/**
 * In the order of the texts, which are compact JWS.
 * @throws Problem `too-many`; `rate-limited`, `busy`: nothing was heard, and repeating the same bytes is safe
 */
export async function hear(
  { quota, directory, intake, pace }: Hearing,
  texts: readonly string[],
): Promise<(Heard | Unheard)[]> {
  if (texts.length > HEARTBEATS_MAX) throw new Problem("too-many");
  const bytes = texts.reduce((sum, text) => sum + text.length, 0);
  const leave = intake.enter(texts.length, bytes);
  try {
    const results: (Heard | Unheard)[] = [];
    const logs = new Map<string, { positions: number[]; statements: Statement[] }>();
    for await (const [position, statement] of examineAll(directory, texts)) {
      if (statement.kind === "refused") {
        results[position] = { code: statement.code };
        continue;
      }
      const { log } = statement.payload;
      const group = logs.get(log) ?? { positions: [], statements: [] };
      logs.set(log, group);
      group.positions.push(position);
      group.statements.push(statement);
    }
    const signed = [...logs.values()].flatMap(({ statements }) => statements);
    for (const kid of new Set(signed.map((statement) => statement.kid))) await pace?.(kid);
    // One log after the other: a host has one, and its namespaces are asked all at once.
    for (const [log, { positions, statements }] of logs) {
      const heard = await hearLog(quota, log, statements);
      for (const [i, result] of heard.entries()) results[positions[i] ?? -1] = result;
    }
    return results;
  } finally {
    leave();
  }
}

type Statement = Examined<Heartbeat>;

async function* examineAll(
  directory: Directory,
  texts: readonly string[],
): AsyncGenerator<[position: number, statement: Statement | Pick<Refused, "kind" | "code">]> {
  const kids = texts.flatMap((text) => readCompact(text)?.kid ?? []);
  const keys = await directory.find([...new Set(kids)]);
  for (const [position, text] of texts.entries()) {
    if (position % AT_ONCE === AT_ONCE - 1) await new Promise(setImmediate);
    const statement = examine(text, TYP.heartbeat, Heartbeat, ({ kid }) => keys.get(kid));
    const isForeign =
      statement.kind === "signed" &&
      (await directory.home(statement.kid, statement.payload.log)) !== statement.payload.log;
    yield [position, isForeign ? { kind: "refused", code: "wrong-log" } : statement];
  }
}

/** In the order of the statements. */
async function hearLog(
  quota: Quotaing,
  log: string,
  statements: readonly Statement[],
): Promise<(Heard | Unheard)[]> {
  try {
    const prefix = await prefixFor(quota, log, statements);
    const posed = statements.map((statement) => posedBy(quota, prefix, statement));
    const decisions = await answerAll(
      quota,
      log,
      posed.flatMap((jobs) => jobs ?? []),
      DECISION_AGE_MS,
    );
    return statements.map(({ kid }, i) => {
      const jobs = posed[i];
      if (jobs === undefined) return { code: "key-has-ended" };
      return { code: "heard", log, kid, decisions: decisions.splice(0, jobs.length) };
    });
  } catch (error) {
    if (!(error instanceof Problem && error.code === "busy")) throw error;
    return statements.map(() => ({ code: "busy" }));
  }
}

async function prefixFor(
  quota: Quotaing,
  log: string,
  statements: readonly Statement[],
): Promise<Prefix> {
  const [first] = statements;
  const namespace = first?.payload.jobs[0]?.root_namespace_id ?? "";
  return await recentPrefix(quota, { log, namespace }, (prefix) => {
    return statements.every(({ kid }) => prefix.key(kid) !== undefined);
  });
}

/** For each job; undefined if the key has ended. */
function posedBy(
  { budget, clock }: Quotaing,
  prefix: Prefix,
  { kid, payload }: Statement,
): (Posed | Decision)[] | undefined {
  const key = prefix.key(kid);
  if (key === undefined) throw new Error("heartbeat: a key that is enrolled, and not on the log");
  if (key.trustedUpTo !== undefined) return undefined;
  const { issued_at, jobs, log, runner } = payload;
  const now = clock.now();
  const at = instantText(now);
  const saidAt = Math.min(now, epochMs(issued_at));
  return jobs.map((job) =>
    posedAs(prefix, { budget, key, log, uuid: runner.uuid, now, at, saidAt }, job),
  );
}

interface Speaker {
  budget: LiveBudget;
  key: KeyState;
  log: string;
  uuid: string;
  /** Epoch milliseconds. */
  now: number;
  /** The same as an `InstantText`. */
  at: string;
  /** As long ago as the heartbeat itself says. */
  saidAt: number;
}

function posedAs(
  prefix: Prefix,
  { budget, key, log, uuid, now, at, saidAt }: Speaker,
  job: RunningJob,
): Posed | Decision {
  const { id, project_id: project, root_namespace_id: namespace } = job;
  const named = { job_id: id, namespace_id: namespace };
  const runner = coveredRunner(prefix, key, { log, uuid, namespace }, at);
  if (runner === undefined) return uncounted(named, "outside-enrolment");
  if (runner.tracking !== "hosted") return uncounted(named, "not-counted");
  const elapsedMs = BigInt(job.elapsed_ms);
  // As a report of it would be held.
  if (elapsedMs > BigInt(prefix.log.duration_cap_ms)) return uncounted(named, "not-counted");
  const factor = liveFactor(prefix, { namespace, project }, runner, at);
  if (factor === undefined) return uncounted(named, "no-rate");
  if (isNothing(factor)) return uncounted(named, "not-counted");
  if (!budget.takes(key.kid, { namespace, job: id }, now)) return uncounted(named, "too-many-jobs");
  const amount = charge(milliseconds(elapsedMs), factor);
  const until = countsUntil(prefix, saidAt, job);
  const said = { job: id, amount, elapsedMs, until, by: key.index };
  return { namespace, by: key.kid, ask: { kind: "run", ...said } };
}

/**
 * No job runs longer than reports may say, whatever its timeout. From when the heartbeat was signed: said
 * again later it would bring back a job that was given up.
 */
function countsUntil(
  { log }: Prefix,
  saidAt: number,
  { elapsed_ms, timeout_ms = log.duration_cap_ms }: RunningJob,
): number {
  const [timeout, cap] = [BigInt(timeout_ms), BigInt(log.duration_cap_ms)];
  const until = BigInt(saidAt) - BigInt(elapsed_ms) + (timeout < cap ? timeout : cap) + SILENT_MS;
  if (until <= 0n) return 0;
  return until < TIME_MAX ? Number(until) : Number(TIME_MAX);
}

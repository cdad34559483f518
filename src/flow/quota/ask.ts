/**
 * One namespace asked: the ledger's figures and the live usage brought together. Whoever asks live usage of
 * anything does it here, so that one loop knows what to do when one of the two is behind the other.
 */
import { Problem } from "../../core/problem.ts";
import { type Figures, figuresOf, readFigures, type ShownQuota } from "../../core/quota/figures.ts";
import type {
  Ask,
  Call,
  Command,
  Done,
  LiveJob,
  NamespaceKey,
  Result,
} from "../../core/quota/live.ts";
import { type Quota, type QuotaFacts, quotaAt } from "../../core/quota/quota.ts";
import { instantText } from "../../core/unit.ts";
import type { Clock } from "../clock.ts";
import type { Held } from "./copy.ts";
import { endedAmong, NOBODY } from "./ended.ts";
import type { Ledger } from "./ledger.ts";
import type { Seen } from "./seen.ts";
import type { Live } from "./standing.ts";

export interface Asking {
  ledger: Pick<Ledger, "hold" | "known" | "onLog">;
  live: Pick<Live, "run" | "state">;
  clock: Clock;
  seen: Seen;
}

export interface Asked {
  /** The figures that hold: this process's own, or newer ones that live usage had. */
  figures: Figures;
  shown: ShownQuota;
  live: bigint;
  reserved: bigint;
  /** In the order of the asks. */
  results: readonly AskedResult[];
  jobs?: readonly LiveJob[];
  source: Source;
  /** The figures are no older than that. */
  ageMs: number;
  /** They are older than was asked for, and no newer ones were to be had. */
  stale: boolean;
  /** Redis should have been asked, and was away: other processes have heard of what this one has not. */
  alone: boolean;
  /** Neither stale nor alone. */
  complete: boolean;
}

export type Source = "redis" | "process";

/** `onLog`: the job has ended, and its usage is among what the figures are made of. */
export type AskedResult = Result & { readonly onLog?: true };

export interface AskOptions {
  /** How old the figures may be, where newer ones can be had. */
  maxAgeMs: number;
  /** The answer lists all live jobs. */
  inspect?: boolean;
}

/** Each time one side has caught up with the other; more is a log that moves faster than it is read. */
const ATTEMPTS_MAX = 6;
/** So long an answer may take. */
const ANSWER_MS_MAX = 1_000;

/** What an answer that was none asks for beside the figures. */
type Extra = Pick<Command, "force" | "looked" | "settled">;

/** @throws Problem `not-found` if there is no such log; `busy`, where too little is known to answer */
export async function askNamespace(
  asking: Asking,
  key: NamespaceKey,
  asks: readonly Ask[],
  { maxAgeMs, inspect = false }: AskOptions,
): Promise<Asked> {
  const { clock, ledger, live } = asking;
  const readSince = clock.now() - maxAgeMs;
  const wants = wantsAt(readSince, maxAgeMs);
  // Of nearly all that is asked the answer of live usage is all that there is to wait for.
  let held = ledger.known(key, wants) ?? (await ledger.hold(key, wants));
  let extra: Extra | undefined;
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const ended = asks.some(isRun)
      ? await endedAmong(asking, key.log, held, asks)
      : { jobs: NOBODY, upTo: held.asOf };
    if (ended.upTo > held.asOf) {
      // Such a job would be in neither for a moment, and what it used be given back.
      held = await caughtUp(asking, key, ended.upTo);
      continue;
    }
    const offered = ended.jobs.size === 0 ? asks : asks.filter((ask) => !isEnded(ask, ended.jobs));
    const plain = prepared(asking, key, held, offered);
    const { now, settled } = plain.command;
    // To copy members takes longer than all else here, and there is nothing to add at nearly every time.
    const isPlain = extra === undefined && !inspect;
    const command = isPlain
      ? plain.command
      : { ...plain.command, ...together(settled, extra, inspect) };
    const { answer, source } = await live.run(key, command);
    if (answer.kind === "done") {
      const asked = answered(asking, plain, { answer, source, readSince });
      return ended.jobs.size === 0
        ? asked
        : { ...asked, results: resultsOf(asks, answer.results, ended.jobs) };
    }
    if (answer.kind === "gap") {
      extra = await looked(asking, key.log, answer.jobs, held.asOf);
    } else {
      const newer = await ledger.hold(key, { asOf: answer.asOf });
      extra = { settled: [], ...(newer.asOf < answer.asOf && failedOver(held, newer, now)) };
      held = newer;
    }
  }
  throw new Problem("busy");
}

/** Figures that are as old as they may be would be too old when the answer is given. */
export function wantsAt(readSince: number, maxAgeMs: number): { readSince: number } {
  return { readSince: readSince + Math.max(0, Math.min(ANSWER_MS_MAX, maxAgeMs)) };
}

/** A call of live usage by what is held. */
export interface Prepared extends Call {
  readonly held: Held;
  readonly own: Computed;
  /** Up to where live usage was told which jobs have ended. */
  readonly told: bigint | undefined;
}

export function prepared(
  { clock, seen }: Pick<Asking, "clock" | "seen">,
  key: NamespaceKey,
  held: Held,
  asks: readonly Ask[],
): Prepared {
  const now = clock.now();
  const own = computed(held, now);
  const told = seen.handedTo(key, held);
  const since = between(held.since, told ?? held.since, held.asOf);
  const command = { now, figures: own.figures, since, settled: held.settled(since), asks };
  return { key, command, held, own, told };
}

function together(
  settled: readonly string[],
  extra: Extra | undefined,
  inspect: boolean,
): Partial<Command> {
  const added = extra && { ...extra, settled: [...settled, ...extra.settled] };
  return { ...added, ...(inspect && { inspect }) };
}

export function isRun({ kind }: Ask): boolean {
  return kind === "run";
}

function isEnded({ kind, job }: Ask, ended: ReadonlySet<string>): boolean {
  return kind === "run" && ended.has(job);
}

async function caughtUp({ ledger }: Asking, key: NamespaceKey, asOf: bigint): Promise<Held> {
  const held = await ledger.hold(key, { asOf });
  if (held.asOf < asOf) throw new Problem("busy");
  return held;
}

/** What is live may have ended where this process no longer remembers who did. */
async function looked(
  { ledger }: Asking,
  log: string,
  jobs: readonly string[],
  asOf: bigint,
): Promise<Extra> {
  const found = await ledger.onLog(log, jobs);
  // One that ended later is settled by figures that hold it.
  return { looked: jobs, settled: jobs.filter((job) => (found.get(job) ?? asOf) < asOf) };
}

/**
 * The log is shorter than what live usage knew of it: it lost its tail.
 * @throws Problem `busy` where it was not read just now, so that only the database is away
 */
function failedOver(before: Held, held: Held, since: number): { force: true } {
  if (held === before || held.readAt < since) throw new Problem("busy");
  return { force: true };
}

interface Computed {
  quota: Quota;
  figures: Figures;
}

/** They change with the facts and with the calendar; all else of a decision is cheaper than they are. */
const known = new WeakMap<QuotaFacts, Computed>();

function computed({ facts, asOf, touched, readAt }: Held, now: number): Computed {
  const last = known.get(facts);
  if (last !== undefined && last.figures.from <= now && now < last.figures.until) {
    const { figures, quota } = last;
    if (figures.asOf === asOf && figures.readAt === readAt) return last;
    const moved = { quota, figures: { ...figures, asOf, touched, readAt } };
    known.set(facts, moved);
    return moved;
  }
  const quota = quotaAt(facts, instantText(now));
  const fresh = { quota, figures: figuresOf(quota, { asOf, touched, readAt }) };
  known.set(facts, fresh);
  return fresh;
}

/** What is answered by what was prepared. */
export function answered(
  { clock, live, seen }: Asking,
  { key, held, own, told }: Prepared,
  { answer, source, readSince }: { answer: Done; source: Source; readSince: number },
): Asked {
  if (told !== held.asOf) seen.handed(key, held);
  const { figures, jobs } = answer;
  // Newer figures of somebody else are at least as new as what this process read, by a clock that it knows.
  const { readAt } = own.figures;
  const stale = readAt < readSince;
  const alone = source === "process" && live.state() !== "none";
  return {
    figures,
    shown: figures.text === own.figures.text ? own.quota : readFigures(figures.text),
    live: answer.live,
    reserved: answer.reserved,
    results: answer.results,
    ...(jobs && { jobs }),
    source,
    ageMs: Math.max(0, clock.now() - readAt),
    stale,
    alone,
    complete: !stale && !alone,
  };
}

const ON_LOG: AskedResult = { allowed: true, known: false, onLog: true };

/** In the order of all asks, those that were not offered among them. */
function resultsOf(
  asks: readonly Ask[],
  results: readonly Result[],
  ended: ReadonlySet<string>,
): readonly AskedResult[] {
  let next = 0;
  return asks.map((ask) => {
    if (isEnded(ask, ended)) return ON_LOG;
    const result = results[next];
    next += 1;
    if (result === undefined) throw new Error("ask: an ask without its result");
    return result;
  });
}

function between(least: bigint, value: bigint, most: bigint): bigint {
  return value < least ? least : value > most ? most : value;
}

/**
 * Live usage of one namespace as a machine: the definition. The script in Redis must answer as it does, and
 * the copy of a process runs it. No clock: `now` comes with every command.
 */
import type { Figures } from "./figures.ts";
import {
  endOfStep,
  GONE_MS,
  isLive,
  JOBS_MAX,
  Jobs,
  RESERVED_STEP_MS,
  STEP_MS,
  UNHEARD_BELOW,
  weightOf,
} from "./jobs.ts";
import { type Answer, type Ask, type Command, checkCommand, sameFigures } from "./live.ts";

/** What is kept of one namespace. Nothing of it is a truth: figures are the log's, and jobs are heard again. */
export interface Standing {
  figures: Figures | undefined;
  readonly jobs: Jobs;
}

export function nothingKept(): Standing {
  return { figures: undefined, jobs: new Jobs() };
}

/** No entry's index. */
const NOBODY = -1n;

/** Changes `standing`, unless the answer is `behind` or `gap`: then only what ran out is forgotten. */
export function perform(standing: Standing, command: Command): Answer {
  const { jobs } = standing;
  checkCommand(command);
  jobs.expire(command.now);
  const refusal = refusalOf(standing, command);
  if (refusal !== undefined) return refusal;
  const figures = settle(standing, command);
  for (const ask of command.asks) hear(jobs, command.now, ask);
  const allowed = command.asks.map((ask) => decide(jobs, figures, command.now, ask));
  return {
    kind: "done",
    // When the others' were read is theirs to know: they are of a later entry than the caller has read.
    figures: { ...figures, readAt: command.figures.readAt },
    live: jobs.live,
    reserved: jobs.held - jobs.live,
    results: command.asks.map(({ job }, i) => ({
      allowed: allowed[i] === true,
      known: isLive(jobs.get(job)),
    })),
    ...(command.inspect && { jobs: jobs.list() }),
  };
}

function refusalOf({ figures, jobs }: Standing, command: Command): Answer | undefined {
  if (figures === undefined) return undefined;
  const { asOf } = figures;
  if (isHeld(figures, command)) {
    const valid = figures.from <= command.now && command.now < figures.until;
    return valid && !mayHaveEnded(figures, jobs, command) ? undefined : { kind: "behind", asOf };
  }
  if (asOf >= command.since) return undefined;
  const looked = new Set(command.looked);
  const kept = [...jobs.keys()];
  if (kept.every((job) => looked.has(job))) return undefined;
  return { kind: "gap", asOf, jobs: kept.sort() };
}

/** Equal ones are the caller's too: of those it is known that they hold now. */
function isHeld(figures: Figures, command: Command): boolean {
  return figures.asOf > command.figures.asOf && command.force !== true;
}

/** A job that does not run here may be one whose usage is on the log, past what the caller has seen of it. */
function mayHaveEnded(figures: Figures, jobs: Jobs, command: Command): boolean {
  if (figures.touched < command.figures.asOf) return false;
  return command.asks.some(({ kind, job }) => kind === "run" && jobs.get(job)?.kind !== "running");
}

/** The newer figures, and in one step with them the end of the jobs that they hold. */
function settle(standing: Standing, command: Command): Figures {
  const { figures } = standing;
  if (figures !== undefined && isHeld(figures, command)) return figures;
  if (figures?.asOf !== command.figures.asOf) {
    for (const job of command.settled) standing.jobs.delete(job);
  }
  // Looking alone begins nothing: who looks at all namespaces must not keep them all alive.
  const isBegun = figures !== undefined || command.asks.length > 0;
  if (isBegun && (figures === undefined || !sameFigures(figures, command.figures))) {
    standing.figures = command.figures;
  }
  return command.figures;
}

function hear(jobs: Jobs, now: number, ask: Ask): void {
  switch (ask.kind) {
    case "run":
      if (ask.until > now) beat(jobs, now, ask);
      break;
    case "never_ran":
      giveUp(jobs, now, ask.job);
      break;
    case "revoked":
      if (jobs.get(ask.job)?.by === ask.by) jobs.delete(ask.job);
      break;
    case "start":
    case "go_on":
  }
}

/** Amount and time are each the most that was said, whoever said it: nobody frees what another's job has used. */
function beat(jobs: Jobs, now: number, ask: Extract<Ask, { kind: "run" }>): void {
  const { amount, by, elapsedMs } = ask;
  const kept = jobs.get(ask.job);
  const until = endOfStep(ask.until, STEP_MS);
  const said = { kind: "running", amount, elapsedMs, heardAt: now, until, by } as const;
  if (kept === undefined) {
    if (jobs.size < JOBS_MAX) jobs.put(ask.job, { ...said, floor: 0n });
  } else if (kept.kind === "reserved") {
    jobs.put(ask.job, { ...said, floor: kept.floor });
  } else if (kept.kind === "gone") {
    if (ask.offered !== true && elapsedMs > kept.elapsedMs) {
      jobs.put(ask.job, { ...said, floor: kept.floor });
    }
  } else if (amount > kept.amount || elapsedMs > kept.elapsedMs) {
    jobs.put(ask.job, {
      ...{ ...said, floor: kept.floor },
      ...(amount <= kept.amount && { amount: kept.amount, by: kept.by }),
      elapsedMs: longer(elapsedMs, kept.elapsedMs),
      until: Math.max(until, kept.until),
    });
  }
}

function longer(one: bigint, other: bigint): bigint {
  if (one > other) return one;
  return other;
}

function giveUp(jobs: Jobs, now: number, job: string): void {
  const kept = jobs.get(job);
  if (kept?.kind === "gone" || (kept === undefined && jobs.size >= UNHEARD_BELOW)) return;
  const { elapsedMs, heardAt, until } = kept ?? { elapsedMs: 0n, heardAt: now, until: 0 };
  jobs.put(job, {
    ...{ kind: "gone", amount: 0n, floor: 0n, elapsedMs, heardAt, by: NOBODY },
    until: endOfStep(Math.max(until, now + GONE_MS), STEP_MS),
  });
}

/** After all that was heard; a start that is allowed counts for the next one. */
function decide(jobs: Jobs, figures: Figures, now: number, ask: Ask): boolean {
  switch (ask.kind) {
    case "never_ran":
    case "revoked":
      return true;
    case "run":
    case "go_on":
      return figures.runBound === undefined || jobs.live <= figures.runBound;
    case "start": {
      const { startBound } = figures;
      const kept = jobs.get(ask.job);
      const others = jobs.held - (kept === undefined ? 0n : weightOf(kept));
      const allowed = startBound === undefined || others < startBound;
      if (allowed && ask.until > now) reserve(jobs, now, ask);
      return allowed;
    }
  }
}

function reserve(jobs: Jobs, now: number, ask: Extract<Ask, { kind: "start" }>): void {
  const { job, floor } = ask;
  const kept = jobs.get(job);
  const until = endOfStep(ask.until, RESERVED_STEP_MS);
  if (!isLive(kept)) {
    if (kept === undefined && jobs.size >= JOBS_MAX) return;
    const nothing = { amount: 0n, elapsedMs: 0n, by: NOBODY };
    jobs.put(job, { kind: "reserved", ...nothing, floor, heardAt: now, until });
  } else if (kept.kind === "reserved" && until > kept.until) {
    jobs.put(job, { ...kept, until });
  }
}

/**
 * Live usage of one namespace as a machine: the definition. The script in Redis must answer as it does, and
 * the copy of a process runs it. No clock: `now` comes with every command.
 */
import type { Figures } from "./figures.ts";
import {
  type Answer,
  type Ask,
  byJob,
  type Command,
  checkCommand,
  type LiveJob,
  sameFigures,
} from "./live.ts";

/** `gone`: it never ran. Kept so that who heard it earlier does not bring it back, as only running longer does. */
type Kept = Omit<LiveJob, "job" | "kind"> & { readonly kind: LiveJob["kind"] | "gone" };

/** What is kept of one namespace. Nothing of it is a truth: figures are the log's, and jobs are heard again. */
export interface Standing {
  figures: Figures | undefined;
  readonly jobs: Map<string, Kept>;
}

export function nothingKept(): Standing {
  return { figures: undefined, jobs: new Map() };
}

/** Changes `standing`, unless the answer is `behind` or `gap`: then only what ran out is forgotten. */
export function perform(standing: Standing, command: Command): Answer {
  const { jobs } = standing;
  checkCommand(command);
  for (const [job, { until }] of jobs) if (until <= command.now) jobs.delete(job);
  const refusal = refusalOf(standing, command);
  if (refusal !== undefined) return refusal;
  const figures = settle(standing, command);
  for (const ask of command.asks) hear(jobs, command.now, ask);
  const allowed = command.asks.map((ask) => decide(jobs, figures, command.now, ask));
  const live = liveOf(jobs);
  return {
    kind: "done",
    figures,
    live,
    reserved: heldOf(jobs) - live,
    results: command.asks.map(({ job }, i) => ({
      allowed: allowed[i] === true,
      known: isLive(jobs.get(job)),
    })),
    ...(command.inspect && { jobs: listed(jobs) }),
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
  const living = [...jobs].filter(([, kept]) => isLive(kept)).map(([job]) => ({ job }));
  if (living.every(({ job }) => looked.has(job))) return undefined;
  return { kind: "gap", asOf, jobs: living.sort(byJob).map(({ job }) => job) };
}

/** Equal ones are the caller's too: of those it is known that they hold now. */
function isHeld(figures: Figures, command: Command): boolean {
  return figures.asOf > command.figures.asOf && command.force !== true;
}

/** A job that is new here may be one whose usage is on the log, past what the caller has seen of it. */
function mayHaveEnded(figures: Figures, jobs: Standing["jobs"], command: Command): boolean {
  if (figures.touched < command.figures.asOf) return false;
  return command.asks.some(({ kind, job }) => kind === "run" && !jobs.has(job));
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

function hear(jobs: Standing["jobs"], now: number, ask: Ask): void {
  const kept = jobs.get(ask.job);
  if (ask.kind === "never_ran" && kept !== undefined && kept.kind !== "gone") {
    jobs.set(ask.job, { ...kept, kind: "gone", amount: 0n, floor: 0n });
  } else if (ask.kind === "run" && ask.until > now) {
    const { amount, elapsedMs, until } = ask;
    const isNews = kept === undefined || kept.kind === "reserved" || elapsedMs > kept.elapsedMs;
    const floor = kept?.floor ?? 0n;
    if (isNews)
      jobs.set(ask.job, { kind: "running", amount, floor, elapsedMs, heardAt: now, until });
  }
}

/** After all that was heard; a start that is allowed counts for the next one. */
function decide(jobs: Standing["jobs"], figures: Figures, now: number, ask: Ask): boolean {
  switch (ask.kind) {
    case "never_ran":
      return true;
    case "run":
    case "go_on":
      return figures.runBound === undefined || liveOf(jobs) <= figures.runBound;
    case "start": {
      const { startBound } = figures;
      const kept = jobs.get(ask.job);
      const others = heldOf(jobs) - (kept === undefined ? 0n : weightOf(kept));
      const allowed = startBound === undefined || others < startBound;
      if (allowed && ask.until > now) reserve(jobs, now, ask);
      return allowed;
    }
  }
}

function reserve(jobs: Standing["jobs"], now: number, ask: Extract<Ask, { kind: "start" }>): void {
  const { job, floor, until } = ask;
  const kept = jobs.get(job);
  if (!isLive(kept)) {
    jobs.set(job, { kind: "reserved", amount: 0n, floor, elapsedMs: 0n, heardAt: now, until });
  } else if (kept.kind === "reserved" && until > kept.until) {
    jobs.set(job, { ...kept, until });
  }
}

function isLive(kept: Kept | undefined): kept is Kept & Pick<LiveJob, "kind"> {
  return kept !== undefined && kept.kind !== "gone";
}

function weightOf({ amount, floor }: Kept): bigint {
  return amount > floor ? amount : floor;
}

function liveOf(jobs: Standing["jobs"]): bigint {
  let sum = 0n;
  for (const { amount } of jobs.values()) sum += amount;
  return sum;
}

/** What starts are held to. */
function heldOf(jobs: Standing["jobs"]): bigint {
  let sum = 0n;
  for (const kept of jobs.values()) sum += weightOf(kept);
  return sum;
}

function listed(jobs: Standing["jobs"]): LiveJob[] {
  const list: LiveJob[] = [];
  for (const [job, kept] of jobs) if (isLive(kept)) list.push({ job, ...kept });
  return list.sort(byJob);
}

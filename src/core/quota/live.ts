/**
 * Live usage of a namespace: which hosted jobs run or are about to, and what they have used so far. What is
 * said and asked of it, and where it is kept. Amounts are in units of 10⁻⁶ compute-milliseconds.
 */
import type { Figures } from "./figures.ts";

/** What is said and asked of one namespace at once; all of it happens, or nothing. */
export interface Command {
  /** Epoch milliseconds. */
  readonly now: number;
  /** The caller's own, which hold at `now`. */
  readonly figures: Figures;
  /** `settled` covers the entries [since, figures.asOf). */
  readonly since: bigint;
  /** Jobs that got a usage there. */
  readonly settled: readonly string[];
  /** The jobs of a `gap` that were looked up on the log: those that are on it are in `settled`. */
  readonly looked?: readonly string[];
  /** The caller has looked: the log is shorter than what is kept, so it failed over. The caller's figures count. */
  readonly force?: true;
  /** The answer lists all jobs. */
  readonly inspect?: true;
  /** Sums are formed anew from the jobs, which changes something where they are kept and are wrong. */
  readonly recount?: true;
  readonly asks: readonly Ask[];
}

/** `until`: epoch milliseconds; when that is over, to the whole step of jobs.ts, the job is forgotten. */
export type Ask =
  /** May this pending job start? If so, `floor` is kept for it. Asked again, it is the same reservation. */
  | { readonly kind: "start"; readonly job: string; readonly floor: bigint; readonly until: number }
  /**
   * A heartbeat, cumulative: the most that was said counts, whatever is lost, late or repeated. The caller knows
   * that the job has no usage on the log below `figures.asOf`.
   */
  | {
      readonly kind: "run";
      readonly job: string;
      readonly amount: bigint;
      readonly elapsedMs: bigint;
      readonly until: number;
      /** Index of the `key` entry of who says it. */
      readonly by: bigint;
      /** From a copy: it was heard once, and brings nothing back that is known never to have run. */
      readonly offered?: true;
    }
  /** May this running job go on? Nothing new is known of it. */
  | { readonly kind: "go_on"; readonly job: string }
  | { readonly kind: "never_ran"; readonly job: string }
  /** What the key of this entry said of the job is taken out, if it still counts, and may be said by others. */
  | { readonly kind: "revoked"; readonly job: string; readonly by: bigint };

export type Answer =
  /** Kept are newer figures that the caller cannot be answered by. It catches up to `asOf`, and comes again. */
  | { readonly kind: "behind"; readonly asOf: bigint }
  /** Between `asOf` and `since` any of these jobs may have ended. The caller looks them up, and comes again. */
  | { readonly kind: "gap"; readonly asOf: bigint; readonly jobs: readonly string[] }
  | Done;

export interface Done {
  readonly kind: "done";
  /** The figures that hold: the caller's, or newer ones; `readAt` is the caller's. */
  readonly figures: Figures;
  /** What all jobs have used. */
  readonly live: bigint;
  /** What is kept beyond that for jobs that have not used what they were started with. */
  readonly reserved: bigint;
  /** In the order of the asks. */
  readonly results: readonly Result[];
  /** In the order of their ids; with `inspect`. */
  readonly jobs?: readonly LiveJob[];
}

export interface Result {
  readonly allowed: boolean;
  /** The job is among the live ones now. */
  readonly known: boolean;
}

export interface LiveJob {
  readonly job: string;
  readonly kind: "reserved" | "running";
  readonly amount: bigint;
  /** Counts for the starts of others until `amount` is more. */
  readonly floor: bigint;
  readonly elapsedMs: bigint;
  /** Epoch milliseconds of the last thing that was news. */
  readonly heardAt: number;
  readonly until: number;
  /** Index of the `key` entry of who said the amount; −1: nobody has. */
  readonly by: bigint;
}

export interface NamespaceKey {
  readonly log: string;
  readonly namespace: string;
}

/** One namespace, and what is said and asked of it. */
export interface Call {
  readonly key: NamespaceKey;
  readonly command: Command;
}

/** A place where live usage is kept: the machine of machine.ts, once for each namespace. */
export interface LiveStore {
  run(key: NamespaceKey, command: Command): Promise<Answer>;
  /** All namespaces that anything is kept of, in pages; one may come twice. */
  walk(): AsyncIterable<readonly NamespaceKey[]>;
  close(): Promise<void>;
}

/** So many of them, and their sums, stay below the 56 digits that the script adds up. */
const QUANTITY_BELOW = 10n ** 48n;

/**
 * What every execution refuses: a quantity that its sums have no room for, a time that is no whole number.
 * @throws Error
 */
export function checkCommand({ now, figures, asks }: Command): void {
  checkTimes(now, figures.from, figures.until);
  for (const ask of asks) {
    if (ask.kind === "start") {
      checkTimes(ask.until);
      checkQuantities(ask.floor);
    } else if (ask.kind === "run") {
      checkTimes(ask.until);
      checkQuantities(ask.amount, ask.elapsedMs, ask.by);
    }
  }
}

function checkTimes(...times: readonly number[]): void {
  if (!times.every(Number.isSafeInteger)) throw new Error("live: a time is no whole number");
}

function checkQuantities(...values: readonly bigint[]): void {
  if (!values.every((value) => value >= 0n && value < QUANTITY_BELOW)) {
    throw new Error("live: a quantity is out of range");
  }
}

/** Text of digits is compared as text: no id is a number. */
export function byJob(a: { readonly job: string }, b: { readonly job: string }): number {
  return a.job < b.job ? -1 : a.job > b.job ? 1 : 0;
}

/** The same but for the moment at which they were read. */
export function sameFigures(a: Figures, b: Figures): boolean {
  return (
    a.asOf === b.asOf &&
    a.touched === b.touched &&
    a.from === b.from &&
    a.until === b.until &&
    a.startBound === b.startBound &&
    a.runBound === b.runBound &&
    a.text === b.text
  );
}

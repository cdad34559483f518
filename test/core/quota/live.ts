/** Commands and figures for tests of live usage, with what does not matter filled in. */
import type { Figures } from "../../../src/core/quota/figures.ts";
import type { Ask, Command } from "../../../src/core/quota/live.ts";

type Heartbeat = Extract<Ask, { kind: "run" }>;

/** 2027-01-15, at a whole hour, in epoch milliseconds. */
export const NOW = 1_800_000_000_000;
const FAR = NOW + 86_400_000;

export function figures(given: Partial<Figures> = {}): Figures {
  return {
    asOf: 10n,
    touched: -1n,
    from: NOW - 86_400_000,
    until: FAR,
    startBound: 600n,
    runBound: 900n,
    readAt: NOW,
    text: '{"month":"2027-01-01"}',
    ...given,
  };
}

export function command(asks: readonly Ask[], given: Partial<Command> = {}): Command {
  const own = given.figures ?? figures();
  return { now: NOW, since: 0n, settled: [], asks, ...given, figures: own };
}

export function start(job: string, floor = 60n, until = FAR): Ask {
  return { kind: "start", job, floor, until };
}

/** @param amount as much as it ran, if not said */
export function run(job: string, elapsedMs: bigint, amount = elapsedMs, until = FAR): Heartbeat {
  return { kind: "run", job, amount, elapsedMs, until, by: 2n };
}

export function goOn(job: string): Ask {
  return { kind: "go_on", job };
}

export function neverRan(job: string): Ask {
  return { kind: "never_ran", job };
}

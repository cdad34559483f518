/**
 * What is tried again and again: a failure is said when it begins, when its reason changes, and when it
 * is over. A reason that a thousand logs share is one line, not a thousand each second.
 */
import { Problem } from "../core/problem.ts";
import type { Logger } from "../telemetry.ts";

export interface Trouble {
  /** In this round, of this log; without one, of all of the work. */
  failed(error: unknown, log?: string): void;
  /** The round is over: what did not fail in it goes on. */
  roundEnded(): void;
}

/** Names in one line; the count goes on. */
const NAMED_MAX = 10;
const ALL = "";

interface Failure {
  reason: string;
  error: unknown;
}

export function openTrouble(logger: Logger, what: string): Trouble {
  let before = new Map<string, Failure>();
  let now = new Map<string, Failure>();

  return {
    failed: (error, log = ALL) => {
      now.set(log, { reason: error instanceof Problem ? error.code : String(error), error });
    },
    roundEnded: () => {
      const begun = new Map<string, { error: unknown; logs: string[] }>();
      for (const [log, { reason, error }] of now) {
        if (before.get(log)?.reason === reason) continue;
        const group = begun.get(reason);
        if (group === undefined) begun.set(reason, { error, logs: [log] });
        else group.logs.push(log);
      }
      for (const { error, logs } of begun.values()) {
        logger.error({ err: error, ...named(logs) }, what);
      }
      const over = [...before.keys()].filter((log) => !now.has(log));
      if (over.length > 0) logger.info(named(over), `${what}: goes on`);
      before = now;
      now = new Map();
    },
  };
}

function named(logs: readonly string[]): { logs?: readonly string[]; count?: number } {
  return logs.includes(ALL) ? {} : { logs: logs.slice(0, NAMED_MAX), count: logs.length };
}

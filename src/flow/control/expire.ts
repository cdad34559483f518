/** Nobody decided in time: said on the log, by the service itself. */
import { setTimeout as sleep } from "node:timers/promises";
import { Problem } from "../../core/problem.ts";
import { instantText } from "../../core/unit.ts";
import type { Sql } from "../../store/connect.ts";
import { readOverdue, readProposal } from "../../store/proposals.ts";
import type { Clock, Random } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";

export interface Expiring {
  /** As writer. */
  sql: Sql;
  appender: Appender;
  random: Random;
  clock: Clock;
}

const ROUND_MS = 60_000;
const PAGE = 100;
const BY = "minutebook";
const REASON = "not decided in time";

/** Resolves after the abort. Each process looks; an end that stands already is left alone. */
export async function expireLoop(
  options: Expiring & {
    signal: AbortSignal;
    onFailure: (error: unknown, log?: string) => void;
    onRound: () => void;
  },
): Promise<void> {
  const { signal, onFailure, onRound } = options;
  while (!signal.aborted) {
    await expire(options, onFailure).catch(onFailure);
    onRound();
    await sleep(ROUND_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** One round; how many proposals it ended. A log that cannot be written is told, and keeps no other waiting. */
export async function expire(
  { sql, appender, random, clock }: Expiring,
  onFailure: (error: unknown, log: string) => void,
): Promise<number> {
  const now = instantText(clock.now());
  const left = new Set<string>();
  let ended = 0;
  for (;;) {
    const overdue = await readOverdue(sql, { now, without: [...left], limit: PAGE });
    if (overdue.length === 0) return ended;
    for (const { log, index } of overdue) {
      if (left.has(log)) continue;
      try {
        const ends = await endOverdue({ appender, random }, log, index);
        // By the clock of entries it is not over yet.
        if (ends === 0) left.add(log);
        ended += ends;
      } catch (error) {
        left.add(log);
        onFailure(error, log);
      }
    }
  }
}

async function endOverdue(
  { appender, random }: Pick<Expiring, "appender" | "random">,
  log: string,
  index: bigint,
): Promise<number> {
  return await appender.together(log, async (put, { tx, at }) => {
    const state = await readProposal(tx, log, index);
    if (state === undefined) throw new Problem("not-found");
    if (state.outcome !== null || state.expiresAt.toISOString() > at) return 0;
    const proposal = String(index);
    const said = { by: BY, reason: REASON, salt: salt(random) };
    await put("proposal_ended", { ...said, outcome: "expired", proposal });
    return 1;
  });
}

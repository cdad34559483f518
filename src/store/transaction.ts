/** Limits of a transaction that holds a lock which others queue at. */
import type { Transaction } from "./connect.ts";

const LOCK_MS = 5_000;
const STATEMENT_MS = 10_000;
const IDLE_MS = 5_000;

/**
 * In milliseconds, until the transaction ends. A process that stalls in it (a long pause, a lost network) is thrown out
 * by the server, so that it never keeps the others waiting for longer than this.
 */
export async function limitTransaction(
  tx: Transaction,
  { lock = LOCK_MS, statement = STATEMENT_MS, idle = IDLE_MS } = {},
): Promise<void> {
  await tx`
    select
      set_config('lock_timeout', ${String(lock)}, true),
      set_config('statement_timeout', ${String(statement)}, true),
      set_config('idle_in_transaction_session_timeout', ${String(idle)}, true)
  `;
}

/**
 * For one look at all of a log: what the statistics, which may be a day old, take for one row may be a
 * million by now, and a nested loop over a million is never over.
 */
export async function avoidNestedLoops(tx: Transaction): Promise<void> {
  await tx`select set_config('enable_nestloop', 'off', true)`;
}

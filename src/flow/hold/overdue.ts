/** What waits for persons, looked at each minute: how much, and since when. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Sql } from "../../store/connect.ts";
import { type ResolutionStanding, readResolutionStanding } from "../../store/resolutions.ts";

const ROUND_MS = 60_000;

/** Resolves after the abort. */
export async function overdueLoop({
  sql,
  signal,
  onLook,
  onFailure,
  onRound,
}: {
  sql: Sql;
  signal: AbortSignal;
  onLook: (standing: readonly ResolutionStanding[]) => void;
  onFailure: (error: unknown) => void;
  onRound: () => void;
}): Promise<void> {
  while (!signal.aborted) {
    await readResolutionStanding(sql).then(onLook).catch(onFailure);
    onRound();
    await sleep(ROUND_MS, undefined, { signal }).catch(() => undefined);
  }
}

/**
 * Removes what nothing needs any more: most checkpoints, the claims on what followed them, and partial tiles
 * and bundles whose full ones are there. Otherwise a log would leave a bundle a second behind.
 */
import { setTimeout } from "node:timers/promises";
import { bundlePath, TILE_WIDTH, tilePath } from "../../core/tile.ts";
import { type Archive, checkpointPath, claimPath } from "../../store/archive.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import {
  ensureRetention,
  lockRetention,
  moveRetention,
  overdueLogs,
  passedCheckpoints,
  removeCheckpoints,
} from "../../store/retentions.ts";
import { keepWaiting } from "../../store/seals.ts";
import { settled } from "../../store/settled.ts";
import { transact } from "../../store/transact.ts";
import type { Clock } from "../clock.ts";
import type { SignerFor } from "./signed-checkpoint.ts";
import { judgePassed, newestGenuine, SLOT_MS } from "./superseded.ts";

export interface Retaining {
  /** As writer. */
  sql: Sql;
  archive: Archive;
  signerFor: SignerFor;
  clock: Clock;
}

/** Readers that were given a checkpoint have this long to fetch what it implies. */
const KEPT_MS = 3_600_000;
const INTERVAL_MS = 60_000;
/** At once: little enough that a seal never waits for it. */
const CHECKPOINTS_MAX = 500;
const TILES_MAX = 16n;
const FORGED_TOLD_MAX = 16;
const WIDTH = BigInt(TILE_WIDTH);
const LEVEL_BITS = 8n;

/** Goes over all logs, a little at a time, until the abort. */
export async function retainLoop({
  intervalMs = INTERVAL_MS,
  signal,
  onFailure,
  onRound = () => undefined,
  ...retaining
}: Retaining & {
  intervalMs?: number;
  signal: AbortSignal;
  /** Without a log, not even the list of logs was to be had. */
  onFailure: (error: unknown, log?: string) => void;
  onRound?: () => void;
}): Promise<void> {
  while (!signal.aborted) {
    const pause = setTimeout(intervalMs, undefined, { signal }).catch(() => undefined);
    try {
      let logs = await overdueLogs(retaining.sql, horizon(retaining));
      while (logs.length > 0 && !signal.aborted) {
        logs = await retainEach(retaining, logs, onFailure, signal);
      }
      onRound();
    } catch (error) {
      onFailure(error);
    }
    await pause;
  }
}

/** Once each; those of which more is left. */
async function retainEach(
  retaining: Retaining,
  logs: readonly string[],
  onFailure: (error: unknown, log: string) => void,
  signal: AbortSignal,
): Promise<string[]> {
  const left: string[] = [];
  for (const log of logs) {
    if (signal.aborted) break;
    await retain({ ...retaining, log }).then(
      (more) => more && left.push(log),
      (error: unknown) => onFailure(error, log),
    );
  }
  return left;
}

/**
 * Goes over the next few of a log's checkpoints and tiles. What a crash leaves half done is done again
 * by the next one, and several processes do not disturb each other. Nothing goes by the word of the
 * database alone: what stays in place of what goes is archived and signed.
 *
 * @returns whether there is more to do now
 * @throws Error afterwards, where the database has checkpoints that are forged; ArchiveError
 *   `archive-unavailable`
 */
export async function retain(options: Retaining & { log: string }): Promise<boolean> {
  await ensureRetention(options.sql, options.log);
  const { more, forged } = await transact(options.sql, (tx) => retainLocked(tx, options));
  if (forged.length === 0) return more;
  const told = forged.slice(0, FORGED_TOLD_MAX).join(", ");
  throw new Error(`retain: not in the archive, or not signed by the log, are checkpoints ${told}`);
}

interface Retained {
  more: boolean;
  forged: bigint[];
}

async function retainLocked(
  tx: Transaction,
  { archive, clock, log, signerFor }: Retaining & { log: string },
): Promise<Retained> {
  await keepWaiting(tx);
  const from = await lockRetention(tx, log);
  const proven = { archive, signerFor };
  const newest = from && (await newestGenuine(tx, proven, log));
  if (from === undefined || newest === undefined) return { more: false, forged: [] };
  const before = horizon({ archive, clock });
  const range = { after: from.checkpointsTo, upTo: newest.size, before, limit: CHECKPOINTS_MAX };
  const passed = await passedCheckpoints(tx, log, range);
  const isWhole = passed.length < CHECKPOINTS_MAX;
  const judged = await judgePassed(tx, proven, log, { passed, isWhole });
  // The newest is never gone past. The table could say more than was sealed, where partial tiles have no
  // full one.
  const to = judged?.to ?? from.checkpointsTo;
  const checkpointsTo = to < newest.size ? to : newest.size - 1n;
  const first = from.tilesTo / WIDTH;
  const full = checkpointsTo / WIDTH;
  const end = first + TILES_MAX < full ? first + TILES_MAX : full;

  // Rows first: what the database keeps decides too, and if the archive fails they are back.
  const removed = await removeCheckpoints(tx, log, judged?.superseded ?? []);
  const checkpoints = removed.map((size) => checkpointPath(log, size));
  await archive.remove([...checkpoints, ...(await partials(archive, log, first, end))]);
  await archive.remove(await orphanedClaims(archive, log, removed));
  await moveRetention(tx, log, { checkpointsTo, tilesTo: end * WIDTH });
  const forged = [...newest.forged, ...(judged?.forged ?? [])];
  return { more: !isWhole || end < full, forged };
}

/** What was sealed before is gone over: slots that are whole, and files that no lock holds. */
function horizon({ archive, clock }: Pick<Retaining, "archive" | "clock">): Date {
  const passed = clock.now() - Math.max(KEPT_MS, archive.lockMs);
  return new Date(passed - (passed % SLOT_MS));
}

/**
 * Of the checkpoints that were removed, where the store let go. A process that was left behind goes on
 * from any checkpoint that it finds, and only the claim on what followed keeps it from signing: so
 * claims go last, and those on what follows a checkpoint that stays, or on the first, stay for ever.
 */
async function orphanedClaims(
  archive: Archive,
  log: string,
  removed: readonly bigint[],
): Promise<string[]> {
  if (removed.length === 0) return [];
  const left = new Set(await archive.sizes(log));
  return removed.filter((size) => !left.has(size)).map((size) => claimPath(log, size));
}

/** Of bundles `from` … `end`−1, and of the tiles of all levels that they complete. */
async function partials(
  archive: Archive,
  log: string,
  from: bigint,
  end: bigint,
): Promise<string[]> {
  const full: string[] = [];
  for (let bundle = from; bundle < end; bundle += 1n) {
    full.push(bundlePath(bundle));
    let [level, tiles] = [0, bundle + 1n];
    full.push(tilePath(level, tiles - 1n));
    for (; tiles % WIDTH === 0n; tiles >>= LEVEL_BITS) {
      level += 1;
      full.push(tilePath(level, (tiles >> LEVEL_BITS) - 1n));
    }
  }
  return (await settled(full.map((path) => archive.partials(`${log}/${path}`)))).flat();
}

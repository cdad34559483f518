/**
 * Which checkpoints another one stands for, by what nobody can forge with the database's password: that
 * one is archived and signed, and the entries that both end with say how far they are apart.
 */
import { decodeEntry } from "../../core/entry.ts";
import type { Transaction } from "../../store/connect.ts";
import { readLogKeys } from "../../store/registers.ts";
import { newestSizes, type PassedCheckpoint } from "../../store/retentions.ts";
import { genuineCheckpoint, type Proven } from "./genuine.ts";

/** Of ten minutes, one checkpoint stays (migrations/0005). */
export const SLOT_MS = 600_000;
/** Rows that are looked at for a genuine one. */
const LOOKS_MAX = 16;

export interface Judged {
  /** The database may still keep some of them, as those that were cosigned. */
  superseded: bigint[];
  /** Rows that the archive does not hold, or that the log has not signed. */
  forged: bigint[];
  /** Where to go on; a run that more may belong to is judged again from what stands for it. */
  to: bigint;
}

/**
 * The newest of the log's rows that is genuine, and those above that are not. What is larger is judged
 * by nobody: nothing follows on it.
 *
 * @throws Error where so many rows are forged that none is found; ArchiveError `archive-unavailable`
 */
export async function newestGenuine(
  tx: Transaction,
  proven: Proven,
  log: string,
): Promise<{ size: bigint; forged: bigint[] } | undefined> {
  const sizes = await newestSizes(tx, log, LOOKS_MAX);
  for (const [i, size] of sizes.entries()) {
    const genuine = await genuineCheckpoint(proven, tx, log, size);
    if (genuine !== undefined) return { size, forged: sizes.slice(0, i) };
  }
  if (sizes.length === 0) return undefined;
  throw new Error(`retain: of the newest ${sizes.length} checkpoints the archive holds none`);
}

/**
 * Rows of one ten minutes, by when they were sealed and by when their last entry was written, under the
 * same keys: the newest genuine one stands for those below it.
 *
 * @param passed ascending, up to the newest genuine one
 * @param isWhole there is none after them that may be passed
 */
export async function judgePassed(
  tx: Transaction,
  proven: Proven,
  log: string,
  { passed, isWhole }: { passed: readonly PassedCheckpoint[]; isWhole: boolean },
): Promise<Judged | undefined> {
  const [first, last] = [passed[0], passed.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const keys = (await readLogKeys(tx, [log])).map(({ index }) => index);
  const judged: Judged = { superseded: [], forged: [], to: last.size };
  let stands: bigint | undefined;
  for (const run of runsOf(passed, keys)) {
    stands = undefined;
    for (const { size } of run.toReversed()) {
      if (stands !== undefined) judged.superseded.push(size);
      else if (await genuineCheckpoint(proven, tx, log, size)) stands = size;
      else judged.forged.push(size);
    }
  }
  if (!isWhole && stands !== undefined && stands > first.size) judged.to = stands - 1n;
  return judged;
}

function runsOf(
  passed: readonly PassedCheckpoint[],
  keys: readonly bigint[],
): PassedCheckpoint[][] {
  const runs: PassedCheckpoint[][] = [];
  let before: string | undefined;
  for (const checkpoint of passed) {
    const name = runOf(checkpoint, keys);
    const run = runs.at(-1);
    if (run !== undefined && name !== undefined && name === before) run.push(checkpoint);
    else runs.push([checkpoint]);
    before = name;
  }
  return runs;
}

/**
 * Undefined for one that nothing stands for: its last entry is not there. A key that was added or retired
 * ends a run, since the last checkpoint before leads whoever trusts one key to the next.
 */
function runOf({ size, sealed_at, last }: PassedCheckpoint, keys: readonly bigint[]) {
  const entry = last === null ? "malformed" : decodeEntry(last);
  if (typeof entry === "string") return undefined;
  const slots = [+sealed_at, Date.parse(entry.at)].map((ms) => Math.floor(ms / SLOT_MS));
  return [...slots, keys.filter((index) => index < size).length].join("/");
}

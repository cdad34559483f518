/** One look at a log: what is shown is kept first, then compared with all that was ever seen. */
import { type AskingOptions, askAll } from "./ask.ts";
import { type Alarm, compare, largestOf, type Missed, notesOf, type View } from "./compare.ts";
import { merged, type Seen, settled } from "./seen.ts";
import type { WatchState } from "./state.ts";

export interface LookOptions extends AskingOptions {
  state: WatchState;
  /** Milliseconds since the epoch. */
  now(): number;
}

export interface Look {
  at: number;
  views: View[];
  missed: Missed[];
  /** Size of the largest tree whose tiles gave its root. */
  proven: bigint | undefined;
  /** Seen, and larger than anything that the log shows. */
  ahead: Seen[];
  alarm: Alarm | undefined;
  seen: Seen[];
  /** Why what was seen could not be kept; undefined where it was. */
  unkept: unknown;
}

/**
 * What was seen of a log, by an address or a witness, it must show everywhere by then: receipts promise
 * that entries are under a checkpoint after as long (docs/report-protocol.md).
 */
const SHOWN_MS_MAX = 24 * 3_600_000;

/** Throws `CannotLook` where the state cannot be read. */
export async function look(options: LookOptions): Promise<Look> {
  const { hash, now, state } = options;
  const before = state.read();
  const { missed, views } = await askAll(options);
  const at = now();
  // A signed note that is in hand must outlive whatever the servers do next, and this program.
  const kept = await keeping(state, (held) => merged(held, views, at));
  const seen = kept.seen ?? merged(before, views, at);
  const compared = await compare({ views, before, seen, hash });
  const largest = largestOf(views);
  const shown = largest?.checkpoint.size;
  const ahead = shown === undefined ? [] : seen.filter(({ checkpoint }) => checkpoint.size > shown);
  const alarm = compared.alarm ?? withheld(ahead, largest, at);
  const { covered, proven } = compared;
  const looked = { at, views, missed: [...missed, ...compared.missed], proven, ahead, alarm };
  if (alarm !== undefined || kept.unkept !== undefined) {
    return { ...looked, seen, unkept: kept.unkept };
  }
  const after = await keeping(state, (held) => settled(held, covered));
  return { ...looked, seen: after.seen ?? seen, unkept: after.unkept };
}

async function keeping(
  state: WatchState,
  change: (held: Seen[]) => Seen[],
): Promise<{ seen?: Seen[]; unkept?: unknown }> {
  try {
    return { seen: await state.change(change) };
  } catch (unkept) {
    return { unkept }; // whatever it is: it is said once an alarm, if there is one, has been
  }
}

function withheld(
  ahead: readonly Seen[],
  largest: View | undefined,
  now: number,
): Alarm | undefined {
  const overdue = ahead.find(({ since }) => now - since >= SHOWN_MS_MAX);
  if (overdue === undefined || largest === undefined) return undefined;
  const { checkpoint, from, since } = overdue;
  const detail =
    `${from} has shown ${checkpoint.size} entries since ${new Date(since).toISOString()}, ` +
    `and the log shows ${largest.checkpoint.size} still`;
  return { code: "withheld", detail, notes: notesOf(overdue, largest), proof: [] };
}

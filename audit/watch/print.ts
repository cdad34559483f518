/** What a look says, in sentences and as one line of JSON. */
import { encodeBase64 } from "../../src/core/text.ts";
import { type Alarm, largestOf, type Sighting } from "./compare.ts";
import type { Look } from "./look.ts";
import type { Seen } from "./seen.ts";

/** `file` has the evidence of an alarm, where it could be written. */
export function sentencesOf(log: string, looked: Look, file: string | undefined): string {
  const { ahead, alarm, at, missed, proven, seen, views } = looked;
  const time = new Date(at).toISOString();
  if (alarm !== undefined) {
    const where = file === undefined ? "evidence could not be written" : `evidence in ${file}`;
    return `${time} log ${log}: ALARM: ${alarm.code}: ${alarm.detail}; ${where}\n${notes(alarm)}`;
  }
  const lines: string[] = [];
  if (proven !== undefined) {
    const all = missed.length > 0 ? "could be compared" : "was seen";
    lines.push(`${proven} entries, consistent with all that ${all}`);
  }
  for (const { from, reason } of missed) {
    lines.push(`could not look at ${from}, ${ageOf(lastSeen(seen, from), at)}: ${reason}`);
  }
  const shown = largestOf(views)?.checkpoint.size;
  for (const { checkpoint, from, since } of ahead) {
    const ago = `${Math.round((at - since) / 1000)} s ago`;
    lines.push(
      `${from} has shown ${checkpoint.size} entries, first ${ago}, and the log shows ${shown} so far`,
    );
  }
  return lines.map((line) => `${time} log ${log}: ${line}\n`).join("");
}

export function documentOf(log: string, looked: Look, file: string | undefined): object {
  const { ahead, alarm, at, missed, proven, seen, views } = looked;
  return {
    at: new Date(at).toISOString(),
    log,
    ...(alarm && {
      alarm: alarm.code,
      detail: alarm.detail,
      ...(file !== undefined && { evidence: file }),
      notes: alarm.notes,
      proof: alarm.proof.map(encodeBase64),
    }),
    ...(proven !== undefined && { proven: String(proven) }),
    views: views.map(treeOf),
    missed: missed.map(({ from, reason }) => {
      const last = lastSeen(seen, from);
      return { from, reason, ...(last !== undefined && { last_seen_ms_ago: at - last }) };
    }),
    ahead: ahead.map((one) => ({ ...treeOf(one), first_seen_ms_ago: at - one.since })),
  };
}

function treeOf({ checkpoint, from }: Sighting): { from: string; size: string; root: string } {
  return { from, size: String(checkpoint.size), root: encodeBase64(checkpoint.root) };
}

function notes(alarm: Alarm): string {
  return alarm.notes.map(({ from, note }) => `---- ${from} ----\n${note}`).join("");
}

function ageOf(at: number | undefined, now: number): string {
  return at === undefined ? "never seen" : `last seen ${Math.round((now - at) / 1000)} s ago`;
}

/** Milliseconds since the epoch; undefined for an address that has shown nothing yet. */
function lastSeen(seen: readonly Seen[], from: string): number | undefined {
  const shown = seen.filter((sighting) => sighting.from === from).map(({ at }) => at);
  return shown.length === 0 ? undefined : Math.max(...shown);
}

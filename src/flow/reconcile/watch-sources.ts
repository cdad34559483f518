/**
 * Watches that a source whose events are taken in without a person says of each day how many it sent: of one that
 * never says so, no difference would ever be found. The first statement ends the break (flow/control/count-source).
 */
import type { Finding } from "../../core/break.ts";
import { epochMs, instantText, monthOf } from "../../core/unit.ts";
import type { Transaction } from "../../store/connect.ts";
import { readEntry } from "../../store/entries.ts";
import { readHead } from "../../store/heads.ts";
import { moveReconcileMark, readReconcileMark, startMark } from "../../store/reconcile-marks.ts";
import { indexAt, readOfKind, SOURCED_KINDS, type SourcedKind } from "../../store/source-events.ts";
import { transact } from "../../store/transact.ts";
import type { Clock } from "../clock.ts";
import { decodedAs } from "../usage/show.ts";
import { type Opening, openAtHead } from "./open.ts";

export interface WatchingSources extends Opening {
  clock: Clock;
  /** How long after its day a statement may take to come. */
  graceMs: number;
}

const DAY_MS = 86_400_000;
/** Of one log before the next has its turn. */
const DAYS_MAX = 20;

/** Entries of one day, which is over for longer than the grace. */
interface Day {
  day: string;
  from: bigint;
  to: bigint;
}

/** Days with entries, each once, from the log's first one on. @returns breaks that were opened */
export async function watchSources(watching: WatchingSources, log: string): Promise<number> {
  const { appender, sql } = watching;
  const { sources } = await appender.prefix(log);
  if (sources.length === 0) return 0;
  await startMark(sql, log, "sources");
  let opened = 0;
  for (let days = 0; days < DAYS_MAX; days += 1) {
    const day = await transact(sql, async (tx) => await nextDay(tx, watching, log));
    if (day === undefined) break;
    opened += await openUnstated(watching, log, day, sources);
    await moveReconcileMark(sql, log, "sources", day);
  }
  return opened;
}

async function nextDay(
  tx: Transaction,
  { clock, graceMs }: WatchingSources,
  log: string,
): Promise<Day | undefined> {
  const from = await readReconcileMark(tx, log, "sources");
  const head = await readHead(tx, log);
  if (from === undefined || head === undefined || head.size <= from) return undefined;
  const day = (await readEntry(tx, log, from)).at.slice(0, "YYYY-MM-DD".length);
  const end = epochMs(`${day}T00:00:00.000Z`) + DAY_MS;
  if (clock.now() < end + graceMs) return undefined;
  return { day, from, to: await indexAt(tx, log, head.size, instantText(end)) };
}

async function openUnstated(
  opening: Opening,
  log: string,
  day: Day,
  sources: readonly string[],
): Promise<number> {
  const { appender, sql } = opening;
  const seen = await transact(sql, async (tx) => await readTaken(tx, log, day, sources));
  if (seen.length === 0) return 0;
  return await appender.together(log, async (put, { size, tx }) => {
    // Under the head's lock: a statement that comes meanwhile would find nothing to end.
    const stated = await readStated(tx, log, day, size);
    const findings = seen.flatMap((taken) => {
      return stated.has(nameOf(taken)) ? [] : [unstated(day.day, taken)];
    });
    return await openAtHead({ ...opening, put, tx }, log, findings);
  });
}

/** Of a kind and a source, so many were taken in without a person. */
interface Taken {
  kind: SourcedKind;
  source: string;
  events: number;
}

async function readTaken(
  tx: Transaction,
  log: string,
  range: Day,
  sources: readonly string[],
): Promise<Taken[]> {
  const taken = new Map<string, Taken>();
  for (const kind of SOURCED_KINDS) {
    for await (const { bytes } of readOfKind(tx, log, kind, range)) {
      const { approval, source } = decodedAs(kind, bytes).body;
      if (approval !== "" || !sources.includes(source)) continue;
      const name = nameOf({ kind, source });
      taken.set(name, { kind, source, events: (taken.get(name)?.events ?? 0) + 1 });
    }
  }
  return [...taken.values()];
}

/** What anything was stated of, since the day was over. */
async function readStated(
  tx: Transaction,
  log: string,
  { day, to }: Day,
  size: bigint,
): Promise<Set<string>> {
  const stated = new Set<string>();
  for await (const { bytes } of readOfKind(tx, log, "source_count", { from: to, to: size })) {
    const { body } = decodedAs("source_count", bytes);
    if (body.day === day) stated.add(nameOf(body));
  }
  return stated;
}

function nameOf({ kind, source }: { kind: string; source: string }): string {
  return `${kind} ${source}`;
}

function unstated(day: string, { events, kind, source }: Taken): Finding {
  return {
    code: "source-count",
    about: { day, kind, source },
    detail: `${kind} of ${day}: nothing stated, ${events} here`,
    month: monthOf(day),
    tracking: "hosted",
  };
}

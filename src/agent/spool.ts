/**
 * All that the agent owes one log, and all that the log owes the agent: signed reports in the order of
 * their counters, and the answers to them with their receipts. A report and the place of its line in
 * the source file are one commit, durable before anything is sent: a line is signed once, whenever the
 * agent dies. What is proven, and was so for long enough, goes, one whole segment at a time.
 */
import { Journal } from "./journal.ts";
import { extent, highest, holds, paint, type Span } from "./spans.ts";
import {
  type Answered,
  type Commit,
  type Divergence,
  type Range,
  type Result,
  type Snapshot,
  SpoolRecord,
} from "./spool-record.ts";
import { dayBefore, SpoolState } from "./spool-state.ts";

/** How long what is proven is kept: who audits a month that is over may still want it. */
const KEEP_DAYS = 35;
const EVER = Number.MAX_SAFE_INTEGER;

/** A segment, and what came before it. */
interface Start {
  segment: number;
  reports: number;
  promises: number;
}

export class Spool {
  readonly #state = new SpoolState();
  readonly #journal: Journal<SpoolRecord>;
  /** How a segment begins never changes. */
  readonly #known = new Map<number, Start>();

  constructor(folder: string, segmentBytes?: number) {
    const options = { folder, schema: SpoolRecord, state: this.#state };
    this.#journal = new Journal(
      segmentBytes === undefined ? options : { ...options, segmentBytes },
    );
  }

  /** Reports that no final answer came for. */
  get depth(): number {
    return this.#state.sum.reports - this.#state.sum.answered;
  }

  /** Reports that were answered and are to be sent once more all the same. */
  get again(): Range[] {
    return this.#state.sum.again.map(([from, to]) => [from, to]);
  }

  /** How often these reports were sent once more since they were proven last. */
  tries({ first, results }: Answered): number {
    return highest(this.#state.sum.tries, first, first + results.length);
  }

  /** Texts that were not signed, ever. */
  get rejected(): number {
    return this.#state.sum.rejected;
  }

  /** First answers by code, ever. */
  get codes(): Readonly<Record<string, number>> {
    return this.#state.sum.codes;
  }

  /** Of all reports ever: those that were signed, answered, and proven. */
  get reports(): { signed: number; answered: number; proven: number } {
    const { answered, proven, reports } = this.#state.sum;
    return { signed: reports, answered, proven: extent(proven) };
  }

  /** Promises that the log kept, and that it broke, ever; and those that are open. */
  get promises(): { kept: number; broken: number; open: number } {
    const { broken, kept, promises, settled } = this.#state.sum;
    return { kept, broken, open: promises - extent(settled) };
  }

  /** The newest checkpoint that was verified, as a signed note; `""` before the first. */
  get checkpoint(): string {
    return this.#state.sum.checkpoint;
  }

  /** How what the log showed last stood to that checkpoint; `""` is well. */
  get divergence(): Divergence {
    return this.#state.sum.divergence;
  }

  /** Highest counter that a key has used on this log; 0 before its first report. */
  counter(kid: string): bigint {
    return BigInt(this.#state.sum.counters[kid] ?? 0);
  }

  /** Lines of this log that end here or before are taken. */
  offset(source: number): number {
    return this.#state.sum.offsets[source] ?? 0;
  }

  /** Durable on return, as all that changes the spool. */
  commit(commit: Commit): void {
    this.#journal.append({ kind: "commit", ...commit });
  }

  /** Final answers to the next reports without one, or, from `first` on, to reports sent again. */
  answer(answer: { results: Result[]; at: number; receipt?: string; first?: number }): void {
    const { answered, promises: promise } = this.#state.sum;
    const { first = answered, results } = answer;
    const end = first === answered ? this.#state.sum.reports : answered;
    if (first + results.length > end) throw new Error("spool: more answers than reports");
    this.#journal.append({ kind: "answered", promise, ...answer, first });
  }

  /** The log kept a promise: these reports are on it, under the checkpoint that was seen last. */
  prove(proof: { promise: number; at: number; reports: Range[] }): void {
    this.#journal.append({ kind: "proven", ...proof });
  }

  /** The log is held to `checkpoint` from here on. */
  see(checkpoint: string, divergence: Divergence): void {
    this.#journal.append({ kind: "seen", checkpoint, divergence });
  }

  /** Reports, if they are kept, are to be sent once more; `promises` are done with, `broken` broken. */
  repeat(what: { at: number; reports: Range[]; promises?: number[]; broken?: number }): void {
    const { at, promises = [], broken = 0 } = what;
    const kept = this.kept();
    const reports = what.reports.flatMap((range) => kept.flatMap((other) => overlap(range, other)));
    this.#journal.append({ kind: "again", at, reports, promises, broken });
  }

  /** Reports without a final answer, in order, from the files: a spool may pass the memory. */
  *pending(): Generator<string> {
    const { answered, reports } = this.#state.sum;
    yield* this.texts([answered, reports]);
  }

  /** These reports; fewer where their segments are deleted. */
  *texts([from, to]: Range): Generator<string> {
    const starts = this.#starts();
    const first = starts.findLastIndex(({ reports }) => reports <= from);
    for (const { segment, reports } of starts.slice(Math.max(first, 0))) {
      let place = reports;
      if (place >= to) return;
      for (const record of this.#journal.read(segment)) {
        if (record.kind !== "commit") continue;
        const end = place + record.reports.length;
        if (end > from && place < to) {
          yield* record.reports.slice(Math.max(from - place, 0), to - place);
        }
        place = end;
      }
    }
  }

  /** Answers whose promise is neither proven nor done with, in order. */
  *open(): Generator<Answered> {
    const starts = this.#starts();
    for (const [i, { segment, promises }] of starts.entries()) {
      const next = starts[i + 1]?.promises ?? this.#state.sum.promises;
      if (this.#isDone([promises, next], EVER)) continue;
      for (const answer of this.#answers(segment)) {
        if (!this.#isDone([answer.promise, answer.promise + 1], EVER)) yield answer;
      }
    }
  }

  /** All answers that are kept, those of the newest segment first. */
  *answers(): Generator<Answered> {
    for (const segment of this.#journal.segments().reverse()) yield* this.#answers(segment);
  }

  lastAnswer(): Answered | undefined {
    for (const segment of this.#journal.segments().reverse()) {
      const last = [...this.#answers(segment)].at(-1);
      if (last !== undefined) return last;
    }
    return undefined;
  }

  /** Reports that were answered and whose bytes are still here. */
  kept(): Range[] {
    const { answered, reports: signed } = this.#state.sum;
    const starts = this.#starts();
    return starts
      .map(({ segment, reports }, i): Range => {
        const next = starts[i + 1];
        if (next === undefined) return [reports, Math.min(signed, answered)];
        // Only before a gap does the next one not say where this one ends.
        const end =
          next.segment === segment + 1 ? next.reports : this.#contents(segment).reports[1];
        return [reports, Math.min(end, answered)];
      })
      .filter(([from, to]) => from < to);
  }

  /** As `kept`, without those that are proven, or have a receipt that may yet prove them. */
  bare(): Range[] {
    const { proven } = this.#state.sum;
    const left: Span[] = this.kept().map(([from, to]) => [from, to, 0]);
    for (const [from, to] of proven) paint(left, from, to, undefined);
    for (const { first, receipt, results } of this.open()) {
      if (receipt !== undefined) paint(left, first, first + results.length, undefined);
    }
    return left.map(([from, to]) => [from, to]);
  }

  /**
   * Deletes segments, other than the last, of which every report and every receipt was proven 35 days
   * before `now`, milliseconds since the epoch. Nothing goes while the log contradicts itself.
   */
  prune(now: number): void {
    if (this.divergence !== "") return;
    const day = dayBefore(now, KEEP_DAYS);
    const gone: { reports: Range[]; promises: Range[] } = { reports: [], promises: [] };
    for (const { segment, reports } of this.#starts().slice(0, -1)) {
      // Most are not due: that is seen from their first report.
      if (!this.#isProven([reports, reports + 1], day)) continue;
      const contents = this.#contents(segment);
      if (!this.#isProven(contents.reports, day) || !this.#isDone(contents.promises, day)) continue;
      this.#journal.remove(segment);
      gone.reports.push(contents.reports);
      gone.promises.push(contents.promises);
    }
    if (gone.reports.length > 0) this.#journal.append({ kind: "deleted", ...gone });
  }

  close(): void {
    this.#journal.close();
  }

  #isProven([from, to]: Range, day: number): boolean {
    return holds(this.#state.sum.proven, from, to, day);
  }

  #isDone([from, to]: Range, day: number): boolean {
    return holds(this.#state.sum.settled, from, to, day);
  }

  *#answers(segment: number): Generator<Answered> {
    for (const record of this.#journal.read(segment)) if (record.kind === "answered") yield record;
  }

  /** Which reports and promises stand in a segment. */
  #contents(segment: number): { reports: Range; promises: Range } {
    const { reports, promises } = this.#startOf(segment);
    const contents: { reports: Range; promises: Range } = {
      reports: [reports, reports],
      promises: [promises, promises],
    };
    for (const record of this.#journal.read(segment)) {
      if (record.kind === "commit") contents.reports[1] += record.reports.length;
      if (record.kind === "answered") contents.promises[1] += 1;
    }
    return contents;
  }

  #starts(): Start[] {
    return this.#journal.segments().map((segment) => this.#startOf(segment));
  }

  #startOf(segment: number): Start {
    const known = this.#known.get(segment);
    if (known !== undefined) return known;
    const [snapshot] = this.#journal.read(segment);
    if (snapshot?.kind !== "snapshot") throw new Error("spool: a segment without snapshot");
    const { reports, promises }: Snapshot = snapshot;
    const start = { segment, reports, promises };
    this.#known.set(segment, start);
    return start;
  }
}

function overlap([from, to]: Range, [start, end]: Range): Range[] {
  const both: Range = [Math.max(from, start), Math.min(to, end)];
  return both[0] < both[1] ? [both] : [];
}

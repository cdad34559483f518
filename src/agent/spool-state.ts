/** What a spool's records add up to. */
import type { Journaled } from "./journal.ts";
import { paint, raise } from "./spans.ts";
import type { Answered, Range, Snapshot, SpoolRecord } from "./spool-record.ts";

const DAY_MS = 24 * 3_600_000;
/** Of the count of tries: by then they are as seldom as they get. */
const TRIES_MAX = 20;
/** Codes that are counted by name; those that a service invents beyond are counted together. */
const CODES_MAX = 64;
const OTHER_CODES = "others";

/** Days since the epoch, begun ones counted: what is so many days old is at least that old. */
export function dayAfter(ms: number): number {
  return Math.ceil(ms / DAY_MS);
}

/** The last day that was over so many days before `ms`. */
export function dayBefore(ms: number, days: number): number {
  return Math.floor(ms / DAY_MS) - days;
}

export class SpoolState implements Journaled<SpoolRecord> {
  sum: Snapshot = {
    kind: "snapshot",
    reports: 0,
    answered: 0,
    rejected: 0,
    counters: {},
    offsets: {},
    codes: {},
    promises: 0,
    kept: 0,
    broken: 0,
    proven: [],
    again: [],
    tries: [],
    settled: [],
    checkpoint: "",
    divergence: "",
  };

  snapshot(): SpoolRecord {
    return this.sum;
  }

  apply(record: SpoolRecord): void {
    const { sum } = this;
    switch (record.kind) {
      case "snapshot":
        this.sum = record;
        break;
      case "commit":
        sum.reports += record.reports.length;
        sum.rejected += record.rejected;
        sum.offsets[record.source] = record.offset;
        Object.assign(sum.counters, record.counters);
        break;
      case "answers":
        this.#count(record.answers);
        break;
      case "answered":
        this.#answer(record);
        break;
      case "proven":
        sum.kept += 1;
        this.#prove(record.reports, dayAfter(record.at));
        this.#settle(record.promise, dayAfter(record.at));
        break;
      case "again":
        this.#sendAgain(record.reports);
        sum.broken += record.broken;
        for (const promise of record.promises) this.#settle(promise, dayAfter(record.at));
        break;
      case "seen":
        sum.checkpoint = record.checkpoint;
        sum.divergence = record.divergence;
        break;
      case "deleted":
        for (const [from, to] of record.reports) paint(sum.proven, from, to, 0);
        for (const [from, to] of record.promises) paint(sum.settled, from, to, 0);
        break;
    }
  }

  #answer({ promise, first, results }: Answered): void {
    const { sum } = this;
    if (first === sum.answered) this.#count(results);
    paint(sum.again, first, first + results.length, undefined);
    sum.promises = promise + 1;
  }

  #count(answers: readonly { code: string }[]): void {
    const { codes } = this.sum;
    this.sum.answered += answers.length;
    for (const { code } of answers) {
      const isNamed = Object.hasOwn(codes, code) || Object.keys(codes).length < CODES_MAX;
      const name = isNamed ? code : OTHER_CODES;
      codes[name] = (Object.hasOwn(codes, name) ? (codes[name] ?? 0) : 0) + 1;
    }
  }

  #prove(reports: readonly Range[], day: number): void {
    for (const [from, to] of reports) {
      paint(this.sum.proven, from, to, day);
      paint(this.sum.again, from, to, undefined);
      paint(this.sum.tries, from, to, undefined);
    }
  }

  #settle(promise: number, day: number): void {
    paint(this.sum.settled, promise, promise + 1, day);
  }

  #sendAgain(reports: readonly Range[]): void {
    for (const [from, to] of reports) {
      paint(this.sum.proven, from, to, undefined);
      paint(this.sum.again, from, to, 0);
      raise(this.sum.tries, from, to, TRIES_MAX);
    }
  }
}

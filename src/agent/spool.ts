/**
 * All that the agent owes one log: signed reports in the order of their counters, and what became of
 * them. A report and the place of its line in the source file are one commit, durable before anything
 * is sent: a line is signed once, whenever the agent dies. Nothing is deleted yet.
 */
import { z } from "zod";
import { JWS_CHARS_MAX } from "../core/entry.ts";
import { IntegerText, Kid } from "../core/unit.ts";
import { Journal, type Journaled } from "./journal.ts";

const Count = z.int().min(0);
/** Highest counter used, by key. */
const Counters = z.record(Kid, IntegerText);

const Snapshot = z.strictObject({
  kind: z.literal("snapshot"),
  reports: Count,
  answered: Count,
  rejected: Count,
  counters: Counters,
  /** By source id: where the last line of this log ends that was taken from it. */
  offsets: z.record(z.string(), Count),
  codes: z.record(z.string(), Count),
});

/** Lines of one source up to `offset`. `rejected` counts those of them that were not signed. */
const Commit = z.strictObject({
  kind: z.literal("commit"),
  source: z.int().min(1),
  offset: Count,
  rejected: Count,
  counters: Counters,
  reports: z.array(z.string().max(JWS_CHARS_MAX)),
});
export type Commit = Omit<z.infer<typeof Commit>, "kind">;

/** To the reports that follow those answered already, in their order. */
const Answers = z.strictObject({
  kind: z.literal("answers"),
  answers: z.array(z.strictObject({ code: z.string(), index: IntegerText.optional() })),
});
export type Answer = z.infer<typeof Answers>["answers"][number];

const SpoolRecord = z.discriminatedUnion("kind", [Snapshot, Commit, Answers]);
type SpoolRecord = z.infer<typeof SpoolRecord>;
type Snapshot = z.infer<typeof Snapshot>;

export class Spool {
  readonly #state = new SpoolState();
  readonly #journal: Journal<SpoolRecord>;

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

  /** Texts that were not signed, ever. */
  get rejected(): number {
    return this.#state.sum.rejected;
  }

  /** Answers by code, ever. */
  get codes(): Readonly<Record<string, number>> {
    return this.#state.sum.codes;
  }

  /** Highest counter that a key has used on this log; 0 before its first report. */
  counter(kid: string): bigint {
    return BigInt(this.#state.sum.counters[kid] ?? 0);
  }

  /** Lines of this log that end here or before are taken. */
  offset(source: number): number {
    return this.#state.sum.offsets[source] ?? 0;
  }

  /** Durable on return. */
  commit(commit: Commit): void {
    this.#journal.append({ kind: "commit", ...commit });
  }

  /** Final answers to the next `answers.length` reports without one. Durable on return. */
  answer(answers: Answer[]): void {
    if (answers.length > this.depth) throw new Error("spool: more answers than reports");
    this.#journal.append({ kind: "answers", answers });
  }

  /** Reports without a final answer, in order, from the files: a spool may pass the memory. */
  *pending(): Generator<string> {
    const { answered } = this.#state.sum;
    const { segment, before } = this.#segmentOf(answered);
    let skip = answered - before;
    for (const number of this.#journal.segments().filter((other) => other >= segment)) {
      for (const record of this.#journal.read(number)) {
        if (record.kind !== "commit") continue;
        yield* record.reports.slice(skip);
        skip = Math.max(0, skip - record.reports.length);
      }
    }
  }

  close(): void {
    this.#journal.close();
  }

  /** The last segment that begins no later than this report, and how many reports are before it. */
  #segmentOf(report: number): { segment: number; before: number } {
    for (const segment of this.#journal.segments().reverse()) {
      const [snapshot] = this.#journal.read(segment);
      if (snapshot?.kind !== "snapshot") throw new Error("spool: a segment without snapshot");
      if (snapshot.reports <= report) return { segment, before: snapshot.reports };
    }
    throw new Error("spool: no segment");
  }
}

class SpoolState implements Journaled<SpoolRecord> {
  sum: Snapshot = {
    kind: "snapshot",
    reports: 0,
    answered: 0,
    rejected: 0,
    counters: {},
    offsets: {},
    codes: {},
  };

  snapshot(): SpoolRecord {
    return this.sum;
  }

  apply(record: SpoolRecord): void {
    switch (record.kind) {
      case "snapshot":
        this.sum = record;
        break;
      case "commit":
        this.sum.reports += record.reports.length;
        this.sum.rejected += record.rejected;
        this.sum.offsets[record.source] = record.offset;
        Object.assign(this.sum.counters, record.counters);
        break;
      case "answers":
        this.sum.answered += record.answers.length;
        for (const { code } of record.answers)
          this.sum.codes[code] = (this.sum.codes[code] ?? 0) + 1;
        break;
    }
  }
}

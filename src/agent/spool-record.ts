/**
 * What a spool's journal says, line by line. Every form that was ever written stays readable. Reports
 * go by their place, 0, 1, 2 … in order of signing; promises by the order of their answers.
 */
import { z } from "zod";
import { JWS_CHARS_MAX } from "../core/body.ts";
import { ReceiptResult } from "../core/receipt.ts";
import { IntegerText, Kid } from "../core/unit.ts";
import { Spans } from "./spans.ts";

const Count = z.int().min(0);
/** Highest counter used, by key. */
const Counters = z.record(Kid, IntegerText);
const Range = z.tuple([Count, Count]);
/** Half-open: [from, to). */
export type Range = z.infer<typeof Range>;

/** As it came, with texts that a later service adds: a receipt is over all of it. */
export const Result = ReceiptResult.catchall(z.string());
export type Result = z.infer<typeof Result>;

/**
 * How the log stood to the newest checkpoint that was verified, when last asked. `withheld`: it did not
 * say how it got from there to here.
 */
const Divergence = z.enum(["", "rolled-back", "inconsistent", "withheld"]);
export type Divergence = z.infer<typeof Divergence>;

const Snapshot = z.strictObject({
  kind: z.literal("snapshot"),
  reports: Count,
  answered: Count,
  rejected: Count,
  counters: Counters,
  /** By source id: where the last line of this log ends that was taken from it. */
  offsets: z.record(z.string(), Count),
  codes: z.record(z.string(), Count),
  /** How many promises there were, how many of them the log kept, and how many it broke. */
  promises: Count.default(0),
  kept: Count.default(0),
  broken: Count.default(0),
  /** Reports that are proven, each with the day after the proof; 0 once their bytes are deleted. */
  proven: Spans.default(() => []),
  /** Reports to send once more. */
  again: Spans.default(() => []),
  /** Reports that were to be sent once more and are not proven since, each with how often. */
  tries: Spans.default(() => []),
  /** Promises that nobody waits for any more, each with the day after; 0 once they are deleted. */
  settled: Spans.default(() => []),
  /** The newest one that was verified, as a signed note; `""` before the first. */
  checkpoint: z.string().default(""),
  divergence: Divergence.default(""),
});
export type Snapshot = z.infer<typeof Snapshot>;

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

/** Of agents before receipts: to the reports that follow those answered already, in their order. */
const Answers = z.strictObject({
  kind: z.literal("answers"),
  answers: z.array(z.strictObject({ code: z.string(), index: IntegerText.optional() })),
});

/** One answer of the service, to reports `first`, `first` + 1 …, for the first time or again. */
const Answered = z.strictObject({
  kind: z.literal("answered"),
  promise: Count,
  first: Count,
  /** When it came, in milliseconds since the epoch by this host's clock. */
  at: Count,
  results: z.array(Result),
  /** Whatever came as one. */
  receipt: z.string().max(JWS_CHARS_MAX).exactOptional(),
});
export type Answered = z.infer<typeof Answered>;

/** These reports stand on the log, as the promise said, under the checkpoint that was seen last. */
const Proven = z.strictObject({
  kind: z.literal("proven"),
  promise: Count,
  at: Count,
  reports: z.array(Range),
});

/** Reports to send once more, and promises that are done with: broken, without a receipt, or of nothing. */
const Again = z.strictObject({
  kind: z.literal("again"),
  at: Count,
  reports: z.array(Range),
  promises: z.array(Count),
  broken: Count,
});

/** What the log shows: the checkpoint to hold it to from here on, and whether it does. */
const Seen = z.strictObject({
  kind: z.literal("seen"),
  checkpoint: z.string(),
  divergence: Divergence,
});

/** What is no longer there. */
const Deleted = z.strictObject({
  kind: z.literal("deleted"),
  reports: z.array(Range),
  promises: z.array(Range),
});

export const SpoolRecord = z.discriminatedUnion("kind", [
  Snapshot,
  Commit,
  Answers,
  Answered,
  Proven,
  Again,
  Seen,
  Deleted,
]);
export type SpoolRecord = z.infer<typeof SpoolRecord>;

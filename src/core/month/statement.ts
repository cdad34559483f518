/**
 * The statement of a closed month: canonical JSON that follows from the log's bytes alone, and the note by which
 * the log's keys say it. What is signed is this one text of three lines, which is no checkpoint's: the first is
 * no origin, and the second no size.
 */
import { z } from "zod";
import { IndexOrNone } from "../body.ts";
import { BODY } from "../entry.ts";
import { canonical } from "../json.ts";
import { signedText } from "../signed-text.ts";
import {
  HashText,
  InstantText,
  IntegerText,
  LogId,
  MonthText,
  NonEmptyText,
  Platform,
  SignedComputeMsText,
  Text,
  Tracking,
  Word,
} from "../unit.ts";

/** What must hold before a month is cut off, in the order in which it is shown (docs/months.md). */
export const CONDITIONS = [
  "order",
  "delay",
  "conflicts",
  "holds",
  "breaks",
  "attestations",
  "coverage",
  "accounts",
] as const;
export type ConditionCode = (typeof CONDITIONS)[number];

/** Counts, months and instants by which a precondition held: each has those that docs/months.md names. */
export const Evidence = z.strictObject({
  at: Text.exactOptional(),
  before: Text.exactOptional(),
  end: Text.exactOptional(),
  keys: Text.exactOptional(),
  namespaces: Text.exactOptional(),
  oldest: Text.exactOptional(),
  open: Text.exactOptional(),
  runners: Text.exactOptional(),
  until: Text.exactOptional(),
});
export type Evidence = z.infer<typeof Evidence>;

const Totals = BODY.month_closed.shape.totals;
const Parts = z.strictObject({
  absorbed: SignedComputeMsText,
  included: SignedComputeMsText,
  not_billable: SignedComputeMsText,
  overage: SignedComputeMsText,
  usage: SignedComputeMsText,
});
const PackFigures = z.strictObject({
  bought: SignedComputeMsText,
  closing: SignedComputeMsText,
  drawn: SignedComputeMsText,
  expired: SignedComputeMsText,
  opening: SignedComputeMsText,
  refunded: SignedComputeMsText,
});
const Lines = { lines: IntegerText, sha256: HashText };
const Place = z.strictObject({ at: InstantText, index: IntegerText });

export const Statement = z.strictObject({
  accounts: z.strictObject(Lines),
  /** Sums over all namespaces; `packs` is what was drawn from them. */
  allocations: Parts.extend({ ...Lines, packs: SignedComputeMsText }),
  anchor: z.strictObject({
    by: BODY.month_closed.shape.anchored_by,
    kind: BODY.month_closed.shape.anchor,
  }),
  /** In force at any instant of the month. */
  cards: z.array(
    z.strictObject({
      effective_from: InstantText,
      index: IntegerText,
      source: Text,
      tracking: Tracking,
    }),
  ),
  /** Covers all that the statement is about. */
  checkpoint: z.strictObject({ root: HashText, size: IntegerText }),
  close_delay_days: IntegerText,
  /** The entry `month_closed`. */
  closed: Place,
  /** The cut-off. */
  closing: Place.extend({ approval: IndexOrNone }),
  /** Lines of adjustments posted to the month, by reason. */
  corrections: z.array(
    z.strictObject({ amount: SignedComputeMsText, lines: IntegerText, reason: Word }),
  ),
  /** SHA-256 of each file that was exported for the month. */
  exports: BODY.month_closed.shape.exports,
  instance: z.strictObject({ platform: Platform, unique_id: NonEmptyText }),
  /** Of earlier usage months, posted to this one; a part of `totals`. */
  late: z.array(Totals.extend({ usage_month: MonthText })),
  log: LogId,
  month: MonthText,
  packs: PackFigures.extend(Lines),
  preconditions: z.array(z.strictObject({ code: z.enum(CONDITIONS), evidence: Evidence })),
  /** Entries from … to−1: those since the cut-off before, or since the log began. */
  range: z.strictObject({ from: IntegerText, to: IntegerText }),
  rollups_sha256: HashText,
  totals: Totals,
  /** By tracking and machine type; `machine_type` is `""` for corrections of a namespace's month. */
  usage: z.array(Totals.extend({ machine_type: Text, tracking: Tracking })),
  v: z.literal("1"),
});
export type Statement = z.infer<typeof Statement>;

export function encodeStatement(statement: Statement): string {
  return canonical(statement);
}

/**
 * What is signed for a statement: nothing but a log's name, a month and a hash can be put into it.
 *
 * @param json as `encodeStatement` gives it
 * @throws Error on an origin with a line break, which would be read as another
 */
export function statementText(origin: string, month: string, json: string): string {
  return signedText({ form: "statement", name: month, origin }, json);
}

/**
 * Bodies of the entries of reconciliation and evidence: what others saw, what differs, and that controls
 * were at work. Part of the one table in `entry.ts`.
 */
import { z } from "zod";
import { APPROVED, CAUSE, DayText, IndexOrNone, PERSON } from "./body.ts";
import {
  HashText,
  InstantText,
  IntegerText,
  MonthText,
  NonEmptyText,
  PositiveText,
  SaltText,
  SignedComputeMsText,
  SignedIntegerText,
  Text,
  Tracking,
} from "./unit.ts";

export const BREAK_CODES = [
  "missing-report",
  "missing-job",
  "duration",
  "foreign-runner",
  "other-namespace",
  "counter-gap",
  "missing-attestation",
  "undelivered",
  "clock-offset",
  "over-timeout",
  "over-capacity",
  "sudden-jump",
  "source-count",
  "portal-difference",
] as const;
export const BreakCode = z.enum(BREAK_CODES);
export type BreakCode = z.infer<typeof BreakCode>;

/** Thirty years: an entry stays below its 65,535 bytes. */
export const FEED_MONTHS_MAX = 360;
/** Months of one acknowledgement that may differ: each is up to two entries behind it, and reports queue meanwhile. */
export const FEED_DIFFERING_MAX = 25;
/** Names of consumers of one log: each is asked for in its own right ever after. */
export const FEED_CONSUMERS_MAX = 100;

export const EVIDENCE_BODY = {
  /** The platform's own list of what a runner did in [from, to), as it was pulled or uploaded. */
  coverage: z.strictObject({
    ...PERSON,
    from: InstantText,
    jobs: IntegerText,
    jobs_sha256: HashText,
    runner_id: IntegerText,
    source: NonEmptyText,
    to: InstantText,
  }),
  /** A difference between what was reported and what somebody else saw. Never usage. */
  break: z.strictObject({
    code: BreakCode,
    detail: Text,
    difference_ms: SignedIntegerText,
    /** Digest of what it is about, by which it is opened once. */
    fingerprint: HashText,
    job_id: z.union([IntegerText, z.literal("")]),
    kid: Text,
    month: MonthText,
    namespace_id: z.union([IntegerText, z.literal("")]),
    runner_id: z.union([IntegerText, z.literal("")]),
    salt: SaltText,
    tracking: Tracking,
    usage: IndexOrNone,
  }),
  break_assigned: z.strictObject({ ...PERSON, break: IntegerText, owner: NonEmptyText }),
  /** `healed`: what was missing came, and `evidence` is its entry; nobody decided anything. */
  break_resolved: z.strictObject({
    ...APPROVED,
    ...CAUSE,
    break: IntegerText,
    evidence: IndexOrNone,
    outcome: z.enum(["healed", "accepted", "corrected"]),
  }),
  /** How many events of a day its source counts, and how many stand here. */
  source_count: z.strictObject({
    ...PERSON,
    counted: IntegerText,
    day: DayText,
    kind: z.enum(["quota", "pack", "project_class", "account"]),
    source: NonEmptyText,
    stated: IntegerText,
  }),
  /**
   * What a consumer of the feed took of entries 0 … up_to−1, by its own sums: of each billing month that it or the
   * log has events of, in that order, how many and what they come to; and beside it what the log counts.
   */
  feed_ack: z.strictObject({
    by: NonEmptyText,
    consumer: NonEmptyText,
    months: z
      .array(
        z.strictObject({
          billing_month: MonthText,
          compute_ms: SignedComputeMsText,
          counted_compute_ms: SignedComputeMsText,
          counted_events: IntegerText,
          events: IntegerText,
        }),
      )
      .max(FEED_MONTHS_MAX),
    salt: SaltText,
    up_to: IntegerText,
  }),
  /**
   * Digest of the access log's lines of one day that concern this log. `missing`: numbers that have no line, since
   * the last line of the digested day before and up to this day's last; left out where there is none.
   */
  access_digest: z.strictObject({
    day: DayText,
    lines: IntegerText,
    lines_sha256: HashText,
    missing: PositiveText.exactOptional(),
    salt: SaltText,
  }),
  /** Who had access from … to, looked at by a person; `kept` of `principals` stay. */
  access_review: z.strictObject({
    ...PERSON,
    from: DayText,
    kept: IntegerText,
    list_sha256: HashText,
    principals: PositiveText,
    to: DayText,
  }),
  /** What the service ran as, whenever that is no longer what the entry before says. */
  environment: z.strictObject({
    dependencies_sha256: HashText,
    grants_sha256: HashText,
    salt: SaltText,
    schema_sha256: HashText,
    triggers_sha256: HashText,
    version: NonEmptyText,
  }),
  /** Entries [from, to) were checked on this day; `nothing` says that even that was not. */
  verification: z.strictObject({
    day: DayText,
    findings: IntegerText,
    from: IntegerText,
    outcome: z.enum(["passed", "failed", "nothing"]),
    salt: SaltText,
    to: IntegerText,
    version: NonEmptyText,
  }),
} as const;

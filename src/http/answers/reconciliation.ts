/** What platforms say of their jobs, and what comes of it. */
import { z } from "zod";
import { DayText } from "../../core/body.ts";
import { BODY } from "../../core/entry.ts";
import { InstantText, IntegerText, LogId, NonEmptyText, Tracking, Word } from "../../core/unit.ts";
import type * as completeness from "../../flow/reconcile/completeness.ts";
import type * as show from "../../flow/reconcile/show.ts";
import type * as upload from "../../flow/reconcile/upload.ts";
import { exactly } from "./exactly.ts";
import { Ack } from "./feed.ts";
import { AsOf } from "./listings.ts";

export const Heard = z.strictObject({ log: LogId, kept: z.int().min(0).max(1) });

export const Uploaded = exactly<upload.Uploaded>()(
  z.strictObject({ log: LogId, kept: IntegerText, covered: z.array(IntegerText) }),
);

const AwaitingJob = exactly<show.AwaitingJob>()(
  z.strictObject({
    job_id: IntegerText,
    runner_id: IntegerText,
    tracking: Tracking,
    project_id: IntegerText.exactOptional(),
    namespace_id: IntegerText.exactOptional(),
    status: Word,
    state: z.enum(["running", "held", "awaiting", "missing"]),
    started_at: InstantText.exactOptional(),
    finished_at: InstantText.exactOptional(),
    duration_ms: IntegerText.exactOptional(),
    gone_at: InstantText.exactOptional(),
  }),
);

export const AwaitingPage = exactly<show.AwaitingPage>()(
  AsOf.extend({ jobs: z.array(AwaitingJob), next: IntegerText.exactOptional() }),
);

const { fingerprint: _, salt: __, ...broken } = BODY.break.shape;
const resolved = BODY.break_resolved.shape;

const Break = exactly<show.ShownBreak>()(
  z.strictObject({
    index: IntegerText,
    at: InstantText,
    ...broken,
    age_ms: IntegerText,
    owner: NonEmptyText.exactOptional(),
    resolution: z
      .strictObject({
        index: IntegerText,
        at: InstantText,
        by: resolved.by,
        evidence: resolved.evidence,
        outcome: resolved.outcome,
        reason: resolved.reason,
        ticket: resolved.ticket,
      })
      .exactOptional(),
  }),
);

export const BreakPage = exactly<show.BreakPage>()(
  AsOf.extend({ breaks: z.array(Break), next: IntegerText.exactOptional() }),
);

const RunnerCompleteness = exactly<completeness.RunnerCompleteness>()(
  z.strictObject({
    runner_id: IntegerText,
    tracking: Tracking,
    platform_jobs: IntegerText,
    reported: IntegerText,
    matched: IntegerText,
    awaiting: IntegerText,
    missing: IntegerText,
    never_started: IntegerText,
    breaks: z.array(z.strictObject({ code: NonEmptyText, open: IntegerText, ended: IntegerText })),
    covered_through: InstantText.exactOptional(),
    attested_through: InstantText.exactOptional(),
  }),
);

export const Completeness = exactly<completeness.Completeness>()(
  AsOf.extend({
    day: DayText,
    made_since: InstantText,
    looked_at: IntegerText,
    runners: z.array(RunnerCompleteness),
    acknowledged: z.array(Ack),
  }),
);

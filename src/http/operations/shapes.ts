/**
 * Requests and query strings as they are checked, where no flow has their shape already; the OpenAPI
 * document is made from the same.
 */
import { z } from "zod";
import { DayText, JWS_CHARS_MAX } from "../../core/body.ts";
import { isTimeZone } from "../../core/time-zone.ts";
import { IntegerText, LogId, MonthText, NonEmptyText, Tracking } from "../../core/unit.ts";
import { NewProposal } from "../../flow/control/propose.ts";
import { PROPOSAL_STATES } from "../../flow/control/show.ts";
import { NewExport } from "../../flow/export/ask.ts";
import { Acknowledgement } from "../../flow/feed/acknowledge.ts";
import { NewEnrolment } from "../../flow/key/enrol.ts";
import { Revocation } from "../../flow/key/revoke.ts";
import { HEARTBEATS_MAX } from "../../flow/quota/heartbeat.ts";
import { StopCursor } from "../../flow/quota/show-stops.ts";
import { NewPack } from "../../flow/rate/pack.ts";
import { USAGE_GROUPS } from "../../flow/usage/usage.ts";

export const REPORTS_MAX = 500;

/** One compact JWS (BYTES §2). */
export const Jws = z.string().min(1).max(JWS_CHARS_MAX);
const TOKEN_CHARS_MAX = 256;

export const Reports = z.strictObject({ reports: z.array(z.string()).min(1).max(REPORTS_MAX) });

export const HeartbeatBatch = z.strictObject({
  heartbeats: z.array(z.string()).min(1).max(HEARTBEATS_MAX),
});

/** Of questions, or of answers to them, in one request. */
export const JOBS_MAX = 1_000;

const Question = z.strictObject({
  job_id: IntegerText,
  namespace_id: IntegerText,
  ask: z.enum(["start", "go_on"]),
  project_id: IntegerText.optional(),
  machine_type: NonEmptyText.optional(),
  tracking: Tracking.optional(),
});
export const Questions = z.strictObject({
  log: LogId,
  jobs: z.array(Question).min(1).max(JOBS_MAX),
  max_age_ms: IntegerText.optional(),
});

export const NeverRanJobs = z.strictObject({
  jobs: z
    .array(z.strictObject({ job_id: IntegerText, namespace_id: IntegerText }))
    .min(1)
    .max(JOBS_MAX),
});

export const LogEnrolment = NewEnrolment.extend({ log: LogId });
export const LogRevocation = Revocation.extend({ log: LogId });
export const LogProposal = NewProposal.extend({ log: LogId });
export const IdToken = z.strictObject({ id_token: Jws });
/** `before`: the `next` of the page before. */
export const ProposalSearch = z.strictObject({
  log: LogId,
  state: z.enum(PROPOSAL_STATES).optional(),
  before: IntegerText.optional(),
});
export const LogExport = NewExport.extend({ log: LogId });
/** `before`: the `next` of the page before. */
export const ExportSearch = z.strictObject({ log: LogId, before: IntegerText.optional() });
export const ExportId = z.string().regex(/^[0-9a-f]{32}$/);
export const LogPack = NewPack.extend({ log: LogId });
export const TokenClaim = z.strictObject({
  token: z.string().min(1).max(TOKEN_CHARS_MAX),
  claim: Jws,
});
export const KeyRotation = z.strictObject({ rotation: Jws, claim: Jws });

const Groups = z.array(z.enum(USAGE_GROUPS)).max(USAGE_GROUPS.length);

/** Either one billing month, or from … to of which the end is not included. */
export const UsageSearch = z
  .strictObject({
    log: LogId,
    month: MonthText.optional(),
    from: MonthText.optional(),
    to: MonthText.optional(),
    group: z
      .string()
      .describe(`Of ${USAGE_GROUPS.join(", ")}: several, with commas between`)
      .transform((text) => text.split(","))
      .pipe(Groups)
      .default([]),
    namespace: IntegerText.optional(),
    project: IntegerText.optional(),
    runner: IntegerText.optional(),
    machine_type: NonEmptyText.optional(),
    tracking: Tracking.optional(),
    fresh: z.enum(["true", "false"]).default("false"),
  })
  .refine(({ month, from, to }) => month === undefined || (from ?? to) === undefined, {
    path: ["month"],
  });
export type UsageSearch = z.infer<typeof UsageSearch>;

/** `before`: the `next` of the page before. */
export const CreditRunSearch = z.strictObject({ before: IntegerText.optional() });

/** `after`: the index of the last item of the page before. */
export const PageSearch = z.strictObject({ after: IntegerText.optional() });
/** `after`: the `next` of the page before. */
export const AccessSearch = z.strictObject({ day: DayText, after: IntegerText.optional() });
export const PrincipalSearch = z.strictObject({ log: LogId, after: z.string().optional() });
/** The whole of a UTC day. */
export const CompletenessSearch = z.strictObject({ day: DayText });
/** `after`: as above. */
export const ResolvedSearch = PageSearch.extend({
  state: z.enum(["open", "ended", "all"]).default("all"),
});
/** `before`: the `next` of the page before. */
export const BreakSearch = z.strictObject({
  state: z.enum(["open", "ended", "all"]).default("open"),
  before: IntegerText.optional(),
});
/** `after`: the `next` of the page before. */
export const StopSearch = z.strictObject({ after: StopCursor.optional() });
/** As above: `<namespace>/<usage month>`. */
export const AllocationSearch = z.strictObject({ after: placeIn(MonthText).optional() });
/** As above: `<namespace>/<pack>`. */
export const PackRollSearch = z.strictObject({ after: placeIn(IntegerText).optional() });

/** A name of the IANA database; UTC without one. */
export const StatementSearch = z.strictObject({
  time_zone: z.string().refine(isTimeZone).optional(),
});

function placeIn(second: z.ZodType<string>) {
  return z.string().refine((text) => {
    const [namespace, place, ...more] = text.split("/");
    const fits = IntegerText.safeParse(namespace).success && second.safeParse(place).success;
    return fits && more.length === 0;
  });
}
const FEED_EVENTS_MAX = 1_000;
const FEED_WAIT_S_MAX = 30;

export const FeedSearch = z.strictObject({
  log: LogId,
  cursor: IntegerText.default("0"),
  limit: counted(1, FEED_EVENTS_MAX).default(500),
  wait_s: counted(0, FEED_WAIT_S_MAX).default(0),
});
export const LogAcknowledgement = Acknowledgement.extend({ log: LogId });

export const JobSearch = z.strictObject({ tracking: Tracking.optional() });

const CHECKPOINTS_MAX = 1_000;

/** `after`: the last size of the page before. */
export const CheckpointSearch = z.strictObject({
  after: IntegerText.optional(),
  limit: counted(1, CHECKPOINTS_MAX).default(CHECKPOINTS_MAX),
});

/** A whole number of at most four digits. */
function counted(min: number, max: number) {
  return z
    .string()
    .regex(/^(?:0|[1-9][0-9]{0,3})$/)
    .transform(Number)
    .pipe(z.int().min(min).max(max));
}

/** Sizes are those of checkpoints, the published one where they are left out. */
export const InclusionSearch = z.strictObject({ index: IntegerText, size: IntegerText.optional() });
/** `from` may be any size above 0. */
export const ConsistencySearch = z.strictObject({ from: IntegerText, to: IntegerText.optional() });

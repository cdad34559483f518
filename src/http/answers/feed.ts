/** Events for the Customers Portal, and where what it has of them stands. */
import { z } from "zod";
import { BODY } from "../../core/entry.ts";
import type { CorrectionData, FeedEvent, UsageData } from "../../core/feed/event.ts";
import {
  ComputeMsText,
  FractionText,
  InstantText,
  IntegerText,
  LogId,
  MonthText,
  NonEmptyText,
  SignedComputeMsText,
  Word,
} from "../../core/unit.ts";
import type * as acknowledge from "../../flow/feed/acknowledge.ts";
import type { ShownAck } from "../../flow/feed/acknowledged.ts";
import type { FeedPage } from "../../flow/feed/read.ts";
import { exactly } from "./exactly.ts";
import { Receipt } from "./receipts.ts";

const Uuid = z.uuid({ version: "v5" });
const Minutes = z.string().regex(/^[0-9]+\.[0-9]{12}$/);
const SignedMinutes = z.string().regex(/^-?[0-9]+\.[0-9]{12}$/);
const Credits = z.string().regex(/^-?[0-9]+\.[0-9]{10}$/);

const CHARGE = {
  event_id: Uuid,
  unit_of_measure: z.literal("compute_minute"),
  realm: z.enum(["SaaS", "Dedicated", "SM"]),
  timestamp: InstantText,
  unique_instance_id: NonEmptyText,
  namespace_id: IntegerText,
  root_namespace_id: IntegerText,
  billing_month: MonthText,
  usage_month: MonthText,
};
const METADATA = {
  feature_qualified_name: z.literal("ci_hosted_runners"),
  credits: Credits.exactOptional(),
};

const UsageShape = exactly<UsageData>()(
  z.strictObject({
    ...CHARGE,
    event_type: z.literal("ci_compute_minutes"),
    quantity: Minutes,
    subject: IntegerText,
    project_id: IntegerText,
    compute_ms: ComputeMsText,
    metadata: z.strictObject({
      ...METADATA,
      job_id: IntegerText,
      pipeline_id: IntegerText,
      runner_uuid: NonEmptyText,
      machine_type: NonEmptyText,
      duration_ms: IntegerText,
      factor: FractionText,
    }),
  }),
);

const CorrectionShape = exactly<CorrectionData>()(
  z.strictObject({
    ...CHARGE,
    event_type: z.literal("ci_compute_minutes_correction"),
    quantity: SignedMinutes,
    subject: z.literal(""),
    project_id: z.union([IntegerText, z.literal("")]),
    compute_ms: SignedComputeMsText,
    metadata: z.strictObject({
      ...METADATA,
      reason: Word,
      ticket: NonEmptyText,
      credit_run: IntegerText.exactOptional(),
      corrects: Uuid.exactOptional(),
      reverses: Uuid.exactOptional(),
    }),
  }),
);

function event<T extends FeedEvent["type"], D extends z.ZodType>(type: T, data: D) {
  return z.strictObject({
    specversion: z.literal("1.0"),
    id: Uuid,
    source: z.string().startsWith("/logs/"),
    type: z.literal(type),
    time: InstantText,
    datacontenttype: z.literal("application/json"),
    sequence: z.string().regex(/^[0-9]{19}\.[0-9]{3}$/),
    data,
  });
}

export const CloudEvent = exactly<FeedEvent>()(
  z.union([
    event("com.gitlab.billable_usage", UsageShape),
    event("example.minutebook.billable_usage_corrected", CorrectionShape),
    event("example.minutebook.month_closing", z.strictObject({ billing_month: MonthText })),
    event("example.minutebook.month_closing_withdrawn", z.strictObject({ withdraws: Uuid })),
    event(
      "example.minutebook.month_closed",
      z.strictObject({
        billing_month: MonthText,
        closes: Uuid,
        totals: BODY.month_closed.shape.totals,
      }),
    ),
  ]),
);

export const Feed = exactly<FeedPage>()(
  z.strictObject({
    log: LogId,
    as_of: IntegerText,
    sealed: z.literal(true),
    events: z.array(CloudEvent),
    next_cursor: IntegerText,
  }),
);

/** Of pages one after the other: an event in each line, and behind each page one of `as_of` and `next_cursor`. */
export const FeedLines = z.string().regex(/^(?:\{.*\}\n)+$/);

type OnWire = Omit<acknowledge.Acknowledged, "at" | "leaf" | "index" | "written"> &
  z.infer<typeof Receipt>;
export const AckReceipt = exactly<OnWire>()(
  Receipt.extend({
    months: z.array(BODY.feed_ack.shape.months.element),
    differing: z.array(MonthText),
  }),
);

export const Ack = exactly<ShownAck>()(
  z.strictObject({
    consumer: NonEmptyText,
    index: IntegerText,
    at: InstantText,
    up_to: IntegerText,
    differing: z.array(MonthText),
  }),
);

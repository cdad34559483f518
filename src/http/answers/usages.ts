/** Builds one by one with their arithmetic, and sums of builds. */
import { z } from "zod";
import { NotBillable } from "../../core/entry.ts";
import {
  ComputeMsText,
  FractionText,
  InstantText,
  IntegerText,
  LogId,
  MonthText,
  NonEmptyText,
  SignedComputeMsText,
  Text,
  Tracking,
} from "../../core/unit.ts";
import type * as explain from "../../flow/usage/explain.ts";
import type * as show from "../../flow/usage/show.ts";
import type * as usage from "../../flow/usage/usage.ts";
import { USAGE_GROUPS } from "../../flow/usage/usage.ts";
import { exactly } from "./exactly.ts";
import { AsOf, Recorded } from "./listings.ts";
import { Inclusion } from "./logs.ts";

/** A sum may pass 2^63. */
const SumText = z.string().regex(/^(?:0|[1-9][0-9]*)$/);
const Minutes = z.string().regex(/^[0-9]+\.[0-9]{4}$/);
const SignedMinutes = z.string().regex(/^-?[0-9]+\.[0-9]{4}$/);

export const Rating = exactly<explain.Rating & { not_billable: z.infer<typeof NotBillable> }>()(
  z.strictObject({
    duration_ms: IntegerText,
    machine_type: NonEmptyText,
    class: NonEmptyText,
    card: z.strictObject({
      index: IntegerText,
      runner_factor: z.string(),
      project_factor: z.string().exactOptional(),
    }),
    limit: z.strictObject({ index: IntegerText, monthly_minutes: IntegerText }).exactOptional(),
    billable: z.boolean(),
    not_billable: NotBillable,
    factor: FractionText,
    compute_ms: ComputeMsText,
    compute_minutes: Minutes,
    arithmetic: NonEmptyText,
  }),
);

type ExplainedUsage = explain.ExplainedUsage & { rating: z.infer<typeof Rating> };
export const ExplainedBuild = exactly<ExplainedUsage>()(
  Recorded.extend({
    entry: z.base64(),
    proof: Inclusion.exactOptional(),
    tracking: Tracking,
    usage_month: MonthText,
    billing_month: MonthText,
    clock_anomaly: z.boolean(),
    rating: Rating,
    adjustments: z.array(
      exactly<explain.BuildAdjustment>()(
        z.strictObject({
          index: IntegerText,
          line: IntegerText,
          compute_ms: SignedComputeMsText,
          billing_month: MonthText,
        }),
      ),
    ),
    net_compute_ms: SignedComputeMsText,
  }),
);
export const Explanation = exactly<show.AsOf & { usages: ExplainedUsage[] }>()(
  AsOf.extend({ usages: z.array(ExplainedBuild).min(1) }),
);

export const Figures = exactly<usage.UsageFigures>()(
  z.strictObject({
    jobs: SumText,
    duration_ms: SumText,
    gross_compute_ms: ComputeMsText,
    adjustment_compute_ms: SignedComputeMsText,
    compute_ms: SignedComputeMsText,
    billable_compute_ms: SignedComputeMsText,
    compute_minutes: SignedMinutes,
    amount_used: z.string().regex(/^-?[0-9]+\.[0-9]{2}$/),
    shared_runners_duration: SumText,
  }),
);

type Row = usage.UsageRow & { tracking?: Tracking };
export const UsageRow = exactly<Row>()(
  Figures.extend({
    billing_month: MonthText,
    usage_month: MonthText.exactOptional(),
    tracking: Tracking.exactOptional(),
    namespace: IntegerText.exactOptional(),
    project: IntegerText.exactOptional(),
    runner: IntegerText.exactOptional(),
    /** `""`, as runner and project `0`: adjustments of a namespace's month. */
    machine_type: Text.exactOptional(),
  }),
);

export const UsageFilter = exactly<usage.UsageFilter>()(
  z.strictObject({
    from: MonthText.exactOptional(),
    to: MonthText.exactOptional(),
    tracking: Tracking.exactOptional(),
    namespaces: z.array(IntegerText).exactOptional(),
    project: IntegerText.exactOptional(),
    runner: IntegerText.exactOptional(),
    machine_type: NonEmptyText.exactOptional(),
  }),
);

export const Usage = exactly<usage.UsageAnswer & { rows: Row[] }>()(
  z.strictObject({
    log: LogId,
    as_of: IntegerText,
    sealed: z.boolean(),
    refreshed_at: InstantText.exactOptional(),
    age_ms: SumText.exactOptional(),
    query: UsageFilter,
    group: z.array(z.enum(USAGE_GROUPS)),
    rows: z.array(UsageRow),
    totals: Figures,
  }),
);

/** RFC 4180 with a header; columns are the groups asked for, then the figures. */
export const UsageTable = z.string().regex(/^log,as_of,sealed,billing_month,/);

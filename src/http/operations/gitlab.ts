/** Usage in the shapes of GitLab's GraphQL fields. */
import { z } from "zod";
import { IntegerText, LogId, MonthText } from "../../core/unit.ts";
import { GROUPINGS } from "../../flow/usage/gitlab.ts";
import { CiDedicatedHostedRunnerUsage, CiMinutesUsage } from "../answers/gitlab.ts";
import { json, type Operation } from "./operation.ts";

/** `date`: the first day of the only billing month that is asked for. */
export const MinutesSearch = z.strictObject({
  log: LogId,
  namespace: IntegerText,
  date: MonthText.optional(),
});

/** One billing month, or a year: without either this one. */
export const HostedRunnerSearch = z
  .strictObject({
    log: LogId,
    billing_month: MonthText.optional(),
    year: z
      .string()
      .regex(/^[1-9][0-9]{3}$/)
      .optional(),
    grouping: z.enum(GROUPINGS).default("INSTANCE_AGGREGATE"),
    runner_id: IntegerText.optional(),
  })
  .refine(({ billing_month, year }) => billing_month === undefined || year === undefined, {
    path: ["year"],
  });

export const GITLAB = {
  "GET /v1/gitlab/ci_minutes_usage": {
    summary: "A namespace's months and projects, as GitLab's ciMinutesUsage has them",
    query: MinutesSearch,
    success: { 200: json(CiMinutesUsage) },
    problems: ["too-many"],
  },
  "GET /v1/gitlab/ci_dedicated_hosted_runner_usage": {
    summary: "Months of hosted runners, as GitLab's ciDedicatedHostedRunnerUsage has them",
    query: HostedRunnerSearch,
    success: { 200: json(CiDedicatedHostedRunnerUsage) },
    problems: ["too-many"],
  },
} as const satisfies Readonly<Record<string, Operation>>;

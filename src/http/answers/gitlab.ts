/** Usage in GitLab's shapes: the names of members and the types of values are GitLab's, numbers too. */
import { z } from "zod";
import { MonthText } from "../../core/unit.ts";
import type * as gitlab from "../../flow/usage/gitlab.ts";
import { exactly } from "./exactly.ts";
import { Usage } from "./usages.ts";

/** May be below zero, where more of a closed month was taken back than was used since. */
const Minutes = { minutes: z.int(), sharedRunnersDuration: z.int().min(0) };
const Name = z.string().nullable();

const Extensions = exactly<gitlab.Extensions>()(
  Usage.pick({ log: true, as_of: true, sealed: true, refreshed_at: true, age_ms: true }),
);

const Project = exactly<gitlab.ProjectMinutes>()(
  z.strictObject({
    name: Name,
    ...Minutes,
    project: z.strictObject({ id: z.string(), name: Name }).nullable(),
  }),
);

const Namespace = exactly<gitlab.NamespaceMinutes>()(
  z.strictObject({
    month: z.string(),
    monthIso8601: MonthText,
    ...Minutes,
    projects: z.strictObject({ nodes: z.array(Project) }),
  }),
);

export const CiMinutesUsage = exactly<gitlab.CiMinutesUsage>()(
  z.strictObject({
    data: z.strictObject({ ciMinutesUsage: z.strictObject({ nodes: z.array(Namespace) }) }),
    extensions: Extensions,
  }),
);

const HostedRunner = exactly<gitlab.HostedRunnerUsage>()(
  z.strictObject({
    billingMonth: z.string(),
    billingMonthIso8601: MonthText,
    computeMinutes: z.int(),
    durationSeconds: z.int().min(0),
    computeMinutesUsage: z.number(),
    durationMinutes: z.number().min(0),
    rootNamespace: z
      .strictObject({ __typename: z.literal("Namespace"), id: z.string(), name: Name })
      .nullable(),
  }),
);

export const CiDedicatedHostedRunnerUsage = exactly<gitlab.CiDedicatedHostedRunnerUsage>()(
  z.strictObject({
    data: z.strictObject({
      ciDedicatedHostedRunnerUsage: z.strictObject({ nodes: z.array(HostedRunner) }),
    }),
    extensions: Extensions,
  }),
);

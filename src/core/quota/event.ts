/**
 * What is told when a namespace's level changes: the body of a webhook (Standard Webhooks 1.0.0,
 * "Payload structure") and what its owner is shown.
 */
import { z } from "zod";
import { formatSignedComputeMs, signedComputeMinutes } from "../charge.ts";
import { InstantText, IntegerText, LogId, MonthText } from "../unit.ts";
import { LEVELS, type Level } from "./level.ts";
import type { Quota } from "./quota.ts";

const TYPES = ["quota.warning", "quota.danger", "quota.exceeded", "quota.recovered"] as const;
export type QuotaEventType = (typeof TYPES)[number];

export const QuotaEvent = z.strictObject({
  type: z.enum(TYPES),
  /** When the change was seen. */
  timestamp: InstantText,
  data: z.strictObject({
    log: LogId,
    namespace_id: IntegerText,
    month: MonthText,
    level: z.enum(LEVELS),
    unlimited: z.boolean(),
    /** By the log alone, without what runs; absent where there is nothing to run out of. */
    remaining_compute_ms: z
      .string()
      .regex(/^-?[0-9]+\.[0-9]{6}$/)
      .exactOptional(),
    remaining_minutes: z
      .string()
      .regex(/^-?[0-9]+\.[0-9]{4}$/)
      .exactOptional(),
    /** Of the plan, without packs. */
    limit_minutes: IntegerText,
    as_of: IntegerText,
  }),
});
export type QuotaEvent = z.infer<typeof QuotaEvent>;

/** Where and when a change was seen. */
export interface Seen {
  log: string;
  namespace: string;
  asOf: bigint;
  /** An `InstantText`. */
  at: string;
}

/**
 * One event for one change, however many levels it passes: the one that is reached, or `recovered` where
 * it is a farther one. Undefined where nothing changes.
 */
export function eventOf(
  { log, namespace, asOf, at }: Seen,
  quota: Quota,
  change: { from: Level; to: Level },
): QuotaEvent | undefined {
  const type = typeOf(change);
  if (type === undefined) return undefined;
  const { available, limit, month, unlimited } = quota;
  return {
    type,
    timestamp: at,
    data: {
      log,
      namespace_id: namespace,
      month,
      level: change.to,
      unlimited,
      ...(!unlimited && {
        remaining_compute_ms: formatSignedComputeMs(available),
        remaining_minutes: signedComputeMinutes(available),
      }),
      limit_minutes: String(limit?.monthly_minutes ?? 0n),
      as_of: String(asOf),
    },
  };
}

function typeOf({ from, to }: { from: Level; to: Level }): QuotaEventType | undefined {
  if (from === to) return undefined;
  if (to === "none" || LEVELS.indexOf(to) < LEVELS.indexOf(from)) return "quota.recovered";
  return `quota.${to}`;
}

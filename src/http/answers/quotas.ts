/** Decisions of quota, and what was said no to. */
import { z } from "zod";
import type { ProblemCode } from "../../core/problem.ts";
import { InstantText, IntegerText, Kid, LogId, MonthText, NonEmptyText } from "../../core/unit.ts";
import * as decide from "../../flow/quota/decide.ts";
import type * as heartbeat from "../../flow/quota/heartbeat.ts";
import type * as stops from "../../flow/quota/show-stops.ts";
import { exactly } from "./exactly.ts";
import { Amount, QuotaLimit } from "./namespace-quotas.ts";

const Source = z.enum(["redis", "process"]);
const Reason = z.enum(decide.DECISION_REASONS);

export const Decision = exactly<decide.Decision>()(
  z.strictObject({
    job_id: IntegerText,
    namespace_id: IntegerText,
    allowed: z.boolean(),
    job_status: z.enum(["running", "failed"]),
    reason: Reason,
    remaining_compute_ms: Amount.shape.compute_ms.exactOptional(),
    remaining_minutes: Amount.shape.compute_minutes.exactOptional(),
    month: MonthText.exactOptional(),
    as_of: IntegerText.exactOptional(),
    age_ms: IntegerText.exactOptional(),
    source: Source.exactOptional(),
  }),
);

export const Decisions = z.strictObject({ log: LogId, decisions: z.array(Decision).min(1) });

/** `busy` of one: its log is out of reach, and others were heard. */
export const HEARTBEAT_PROBLEMS = [
  "malformed",
  "unknown-key",
  "bad-signature",
  "wrong-typ",
  "non-canonical",
  "schema",
  "wrong-log",
  "key-has-ended",
  "busy",
] as const satisfies readonly ProblemCode[];

export const HeardHeartbeat = exactly<heartbeat.Heard>()(
  z.strictObject({
    code: z.literal("heard"),
    log: LogId,
    kid: Kid,
    decisions: z.array(Decision).min(1),
  }),
);
const UnheardHeartbeat = z.strictObject({ code: z.enum(HEARTBEAT_PROBLEMS) });

export const Heartbeats = z.strictObject({
  results: z.array(z.union([HeardHeartbeat, UnheardHeartbeat])).min(1),
});

export const NeverRan = z.strictObject({ log: LogId, jobs: z.int().min(1) });

type ShownStop = stops.ShownStop & {
  ask: "start" | "go_on" | "run";
  reason: z.infer<typeof Reason>;
  source: z.infer<typeof Source>;
};
export const Stop = exactly<ShownStop>()(
  z.strictObject({
    job_id: IntegerText,
    ask: z.enum(["start", "go_on", "run"]),
    first_at: InstantText,
    last_at: InstantText,
    times: IntegerText,
    by: NonEmptyText,
    reason: Reason,
    source: Source,
    as_of: IntegerText,
    month: MonthText,
    beyond: z.enum(["stop", "bill"]),
    limit: QuotaLimit.exactOptional(),
    used: Amount,
    available: Amount,
    live: Amount,
    reserved: Amount,
    remaining: Amount,
  }),
);

type StopPageAnswer = Omit<stops.StopPage, "stops"> & { stops: ShownStop[] };
export const StopPage = exactly<StopPageAnswer>()(
  z.strictObject({
    log: LogId,
    namespace_id: IntegerText,
    stops: z.array(Stop),
    next: NonEmptyText.exactOptional(),
  }),
);

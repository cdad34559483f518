/** A namespace's quota with all that it is made of. */
import { z } from "zod";
import {
  FractionText,
  InstantText,
  IntegerText,
  LogId,
  MonthText,
  NonEmptyText,
  Platform,
} from "../../core/unit.ts";
import type * as amount from "../../flow/quota/amount.ts";
import type * as draws from "../../flow/quota/draws.ts";
import type * as show from "../../flow/quota/show.ts";
import { exactly } from "./exactly.ts";

/** A sum may pass 2^63, and what is left may be below zero. */
export const Amount = exactly<amount.Amount>()(
  z.strictObject({
    compute_ms: z.string().regex(/^-?(?:0|[1-9][0-9]*)\.[0-9]{6}$/),
    compute_minutes: z.string().regex(/^-?[0-9]+\.[0-9]{4}$/),
  }),
);

export const QuotaLimit = exactly<draws.QuotaLimit>()(
  z.strictObject({
    index: IntegerText,
    effective_from: InstantText,
    monthly_minutes: IntegerText,
    amount: Amount,
    cap_minutes: IntegerText.exactOptional(),
    grace_minutes: IntegerText,
  }),
);

const QuotaPack = exactly<draws.QuotaPack>()(
  z.strictObject({
    index: IntegerText,
    source: NonEmptyText,
    pack_id: NonEmptyText,
    minutes: IntegerText,
    expires_in: MonthText,
    draws: z.array(Amount.extend({ month: MonthText })),
    undrawn: Amount,
    left: Amount,
  }),
);

const EarlierMonth = exactly<draws.EarlierMonth>()(
  z.strictObject({
    month: MonthText,
    limit: IntegerText.exactOptional(),
    limit_minutes: IntegerText,
    used: Amount,
    over: Amount,
  }),
);

const LiveJob = exactly<show.RunningJob>()(
  Amount.extend({
    job_id: IntegerText,
    state: z.enum(["running", "frozen"]),
    elapsed_ms: IntegerText,
    factor: FractionText,
    heard_at: InstantText,
    counts_until: InstantText,
  }),
);

const Slip = exactly<show.Slip>()(
  z.strictObject({
    starts: IntegerText.exactOptional(),
    reserve: Amount,
    tolerance: Amount,
    beyond: Amount,
    heartbeat_ms: IntegerText,
    round_ms: IntegerText,
  }),
);

export const NamespaceQuota = exactly<show.NamespaceQuota>()(
  z.strictObject({
    log: LogId,
    namespace_id: IntegerText,
    month: MonthText,
    platform: Platform,
    as_of: IntegerText,
    age_ms: IntegerText,
    source: z.enum(["redis", "process"]),
    complete: z.boolean(),
    unlimited: z.boolean(),
    beyond: z.enum(["stop", "bill"]),
    limit: QuotaLimit.exactOptional(),
    packs: z.array(QuotaPack),
    earlier: z.array(EarlierMonth),
    used: Amount,
    available: Amount,
    live: Amount,
    remaining: Amount,
    start_bound: Amount.exactOptional(),
    run_bound: Amount.exactOptional(),
    jobs: z.array(LiveJob),
    reserved: Amount,
    reservations: z.array(Amount.extend({ job_id: IntegerText, until: InstantText })),
    projected: Amount.extend({ elapsed_ms: IntegerText, month_ms: IntegerText }).exactOptional(),
    slip: Slip.exactOptional(),
  }),
);

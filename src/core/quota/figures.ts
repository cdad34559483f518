/**
 * A namespace's quota as it goes around: to Redis, to other processes, and back. What is compared stands
 * beside the text, what is only shown in it.
 */
import { z } from "zod";
import { canonical, type Json, parseCanonical } from "../json.ts";
import { encodeUtf8 } from "../text.ts";
import { computeMs, InstantText, MonthText, Platform } from "../unit.ts";
import type { LimitFact, Quota } from "./quota.ts";

/** Absolute values, never increments. Bounds as in `Quota`; indices and sizes are the log's. */
export interface Figures {
  /** The size of the log that they were computed at. */
  readonly asOf: bigint;
  /** Index of the last entry below it that changed them; −1: none has. */
  readonly touched: bigint;
  /** Epoch milliseconds, half-open: they hold there as long as no entry comes. */
  readonly from: number;
  readonly until: number;
  readonly startBound: bigint | undefined;
  readonly runBound: bigint | undefined;
  /** Epoch milliseconds: `asOf` was the log's size then. */
  readonly readAt: number;
  /** Canonical JSON of a `ShownQuota`. */
  readonly text: string;
}

/** What is shown of a quota. */
export type ShownQuota = Omit<Quota, "startBound" | "runBound" | "from" | "until">;

export function figuresOf(
  quota: Quota,
  known: Pick<Figures, "asOf" | "touched" | "readAt">,
): Figures {
  const { startBound, runBound, from, until } = quota;
  return { ...known, from, until, startBound, runBound, text: canonical(written(quota)) };
}

/**
 * The quota that a text of `figuresOf` shows.
 * @throws Error on any other text: such texts are our own
 */
export function readFigures(text: string): ShownQuota {
  const { limit, ...shown } = Shown.parse(parseCanonical(encodeUtf8(text)));
  return { ...shown, limit };
}

function written({ limit, ...quota }: Quota): Json {
  return {
    available: String(quota.available),
    beyond: quota.beyond,
    ...(limit === undefined ? {} : { limit: writtenLimit(limit) }),
    month: quota.month,
    packs: quota.packs.map((pack) => ({
      capacity: String(pack.capacity),
      drawn: String(pack.drawn),
      drawnBefore: String(pack.drawnBefore),
      expires_in: pack.expires_in,
      index: String(pack.index),
      minutes: String(pack.minutes),
      pack: pack.pack,
    })),
    platform: quota.platform,
    unlimited: quota.unlimited,
    used: String(quota.used),
  };
}

function writtenLimit(limit: LimitFact): Json {
  return {
    at: limit.at,
    beyond: limit.beyond,
    cap: String(limit.cap ?? ""),
    effective_from: limit.effective_from,
    grace_minutes: String(limit.grace_minutes),
    index: String(limit.index),
    monthly_minutes: String(limit.monthly_minutes),
  };
}

/** Amounts and minutes pass 2^63. */
const Whole = z
  .string()
  .regex(/^(?:0|-?[1-9][0-9]{0,60})$/, { abort: true })
  .transform(BigInt);
const Beyond = z.enum(["stop", "bill"]);

const Shown = z.strictObject({
  available: Whole,
  beyond: Beyond,
  limit: z
    .strictObject({
      at: InstantText,
      beyond: Beyond,
      cap: z.union([z.literal("").transform(() => undefined), Whole]),
      effective_from: InstantText,
      grace_minutes: Whole,
      index: Whole,
      monthly_minutes: Whole,
    })
    .exactOptional(),
  month: MonthText,
  packs: z.array(
    z.strictObject({
      capacity: Whole,
      drawn: Whole,
      drawnBefore: Whole,
      expires_in: MonthText,
      index: Whole,
      minutes: Whole,
      pack: z.string(),
    }),
  ),
  platform: Platform,
  unlimited: z.boolean(),
  used: Whole.transform(computeMs),
});

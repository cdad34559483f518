/**
 * How close a namespace is to the end of its month's minutes, for notifications. By the ledger's figures
 * alone: what runs now is not in it, so that everybody comes to the same level from the same entries.
 */
import type { Quota } from "./quota.ts";

/** From far to near. */
export const LEVELS = ["none", "warning", "danger", "exceeded"] as const;
export type Level = (typeof LEVELS)[number];

/**
 * Of the limit and what packs had left when the month began: `warning` below a quarter, `danger` below a
 * twentieth, `exceeded` at nothing. Compared as products, where a rounded percentage would be early or
 * late. Who cannot run out is at `none`, and so is Dedicated, which is tracked and never stopped.
 */
export function levelOf({
  available,
  platform,
  unlimited,
  used,
}: Pick<Quota, "available" | "platform" | "unlimited" | "used">): Level {
  if (unlimited || platform === "dedicated") return "none";
  const whole = available + used;
  if (available <= 0n) return "exceeded";
  if (20n * available < whole) return "danger";
  return 4n * available < whole ? "warning" : "none";
}

/** What a row of FOCUS is about, whatever it costs. */

import type { Pack } from "./packs.ts";
import type { Line, Part, Portion } from "./portions.ts";

export interface Charge {
  readonly category: "Adjustment" | "Credit" | "Purchase" | "Usage";
  /** Of a month that was closed before. */
  readonly isCorrection: boolean;
  readonly account_id: string | null;
  readonly subscription_id: string | null;
  readonly namespace_id: string;
  readonly project_id: string | null;
  /** Null: minutes of no machine type, which an adjustment of a namespace's month is about. */
  readonly machine_type: string | null;
  readonly tracking: string;
  readonly usage_month: string;
  /** Null: the whole of `usage_month`. */
  readonly day: string | null;
  readonly portion: Portion | "purchase" | "grant";
  /** In units of 10⁻⁶ compute-milliseconds. */
  readonly amount: bigint;
  /** Undefined: nothing was consumed by it. */
  readonly duration_ms?: bigint;
  readonly pack?: Pack;
}

/**
 * Of one line of the portal's file.
 *
 * @param line of an earlier month it is of builds, or of corrections alone
 * @param month that it is billed in
 */
export function chargesOf(line: Line, parts: readonly Part[], month: string): Charge[] {
  const { amounts: _, adjustment, duration_ms: __, jobs, project_id, ...about } = line;
  const isCorrection = line.usage_month < month && adjustment !== 0n;
  return parts.map(({ duration_ms, ...part }) => ({
    ...about,
    ...part,
    project_id: project_id === "0" ? null : project_id,
    isCorrection,
    category: jobs > 0n || isCorrection ? "Usage" : part.amount < 0n ? "Credit" : "Adjustment",
    ...(jobs > 0n ? { duration_ms } : {}),
  }));
}

/** What became of a pack in a month, beside what was drawn. */
export interface Sale {
  readonly account_id: string | null;
  readonly subscription_id: string | null;
  readonly namespace_id: string;
  readonly pack: Pack;
  /** In units of 10⁻⁶ compute-milliseconds; below zero what was given back. */
  readonly amount: bigint;
}

/** A pack that nobody paid for is a credit, and taking it back is the end of one. */
export function saleOf(sale: Sale, month: string): Charge {
  const { isGranted, purchased_in } = sale.pack;
  return {
    ...sale,
    category: isGranted ? "Credit" : "Purchase",
    isCorrection: sale.amount < 0n && purchased_in < month,
    project_id: null,
    machine_type: null,
    tracking: "hosted",
    usage_month: month,
    day: null,
    portion: isGranted ? "grant" : "purchase",
  };
}

/** Whether somebody has to pay for it, or is paid. */
export function isOwed({ portion }: Pick<Charge, "portion">): boolean {
  return portion !== "not_billable" && portion !== "discount";
}

/** Whether it is of a pack itself, and not of what was drawn from one. */
export function isSold({ portion }: Pick<Charge, "portion">): boolean {
  return portion === "purchase" || portion === "grant";
}

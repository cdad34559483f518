/** The lines that the digests of `month_closed` are of, and how they are summed up (docs/months.md). */
import { sha256 as hasher } from "@noble/hashes/sha2.js";
import { formatComputeMs, formatSignedComputeMs } from "../charge.ts";
import { canonical, type Json } from "../json.ts";
import { encodeBase64, encodeUtf8 } from "../text.ts";
import { computeMs, type Tracking } from "../unit.ts";
import type { Share } from "./allocation.ts";
import type { PackRoll } from "./roll-forward.ts";

/** Counts and exact sums; amounts in 10⁻⁶ compute-milliseconds, of which `adjustment` alone is signed. */
export interface Sums {
  readonly jobs: bigint;
  readonly duration_ms: bigint;
  readonly compute_ms: bigint;
  readonly billable_compute_ms: bigint;
  readonly adjustment: bigint;
}

export const NO_SUMS: Sums = {
  jobs: 0n,
  duration_ms: 0n,
  compute_ms: 0n,
  billable_compute_ms: 0n,
  adjustment: 0n,
};

/** What is posted to a month of one namespace, usage month and tracking. */
export interface Rollup extends Sums {
  readonly namespace_id: string;
  readonly usage_month: string;
  readonly tracking: Tracking;
}

export interface MappedAccount {
  readonly namespace_id: string;
  readonly account_id: string;
  readonly subscription_id: string;
}

/** SHA-256 over canonical lines as they come, each with its newline. */
export class LineDigest {
  readonly #hash = hasher.create();
  #count = 0n;

  add(line: Json): void {
    this.#hash.update(encodeUtf8(`${canonical(line)}\n`));
    this.#count += 1n;
  }

  get count(): bigint {
    return this.#count;
  }

  /** Base64; nothing is added after it. */
  end(): string {
    return encodeBase64(this.#hash.digest());
  }
}

export function addSums(a: Sums, b: Sums): Sums {
  return {
    jobs: a.jobs + b.jobs,
    duration_ms: a.duration_ms + b.duration_ms,
    compute_ms: a.compute_ms + b.compute_ms,
    billable_compute_ms: a.billable_compute_ms + b.billable_compute_ms,
    adjustment: a.adjustment + b.adjustment,
  };
}

/** As `totals` of `month_closed` has them. */
export function formatSums({ adjustment, billable_compute_ms, compute_ms, ...counts }: Sums) {
  return {
    adjustment_compute_ms: formatSignedComputeMs(adjustment),
    billable_compute_ms: formatComputeMs(computeMs(billable_compute_ms)),
    compute_ms: formatComputeMs(computeMs(compute_ms)),
    duration_ms: String(counts.duration_ms),
    jobs: String(counts.jobs),
  };
}

export function rollupLine({ namespace_id, tracking, usage_month, ...sums }: Rollup) {
  return { ...formatSums(sums), namespace_id, tracking, usage_month };
}

export function allocationLine(namespace_id: string, { packs, usage_month, ...parts }: Share) {
  return {
    ...formatParts(parts),
    namespace_id,
    packs: packs.map(({ drawn, index }) => ({
      drawn: formatSignedComputeMs(drawn),
      pack: String(index),
    })),
    usage_month,
  };
}
export type AllocationLine = ReturnType<typeof allocationLine>;

/** The parts of an allocation but its packs. */
export type Parts = Omit<Share, "packs" | "usage_month">;

export function formatParts({ absorbed, included, not_billable, overage, usage }: Parts) {
  return {
    absorbed: formatSignedComputeMs(absorbed),
    included: formatSignedComputeMs(included),
    not_billable: formatSignedComputeMs(not_billable),
    overage: formatSignedComputeMs(overage),
    usage: formatSignedComputeMs(usage),
  };
}

export function packLine(namespace_id: string, { index, ...figures }: PackRoll) {
  return { ...formatRoll(figures), namespace_id, pack: String(index) };
}
export type PackLine = ReturnType<typeof packLine>;

export function formatRoll(roll: Omit<PackRoll, "index">) {
  return {
    bought: formatSignedComputeMs(roll.bought),
    closing: formatSignedComputeMs(roll.closing),
    drawn: formatSignedComputeMs(roll.drawn),
    expired: formatSignedComputeMs(roll.expired),
    opening: formatSignedComputeMs(roll.opening),
    refunded: formatSignedComputeMs(roll.refunded),
  };
}

export function accountLine({ account_id, namespace_id, subscription_id }: MappedAccount) {
  return { account_id, namespace_id, subscription_id };
}

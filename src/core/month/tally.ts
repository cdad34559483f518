/** The sums and digests of a month, over its namespaces as they come (docs/months.md). */
import type { Tracking } from "../unit.ts";
import type { Share } from "./allocation.ts";
import {
  addSums,
  allocationLine,
  LineDigest,
  NO_SUMS,
  type Parts,
  packLine,
  type Rollup,
  rollupLine,
  type Sums,
} from "./lines.ts";
import type { PackRoll } from "./roll-forward.ts";

/** What is posted to the month of one usage month, tracking and machine type. */
export interface Use extends Sums {
  readonly usage_month: string;
  readonly tracking: Tracking;
  /** `""`: adjustments of a namespace's month. */
  readonly machine_type: string;
}

/** One namespace; they come in the order of their numbers. */
export interface OfNamespace {
  readonly namespace: string;
  readonly usages: readonly Use[];
  /** In the order of usage month and tracking. */
  readonly rollups: readonly Rollup[];
  readonly shares: readonly Share[];
  readonly rolls: readonly PackRoll[];
}

export interface Digested {
  readonly lines: bigint;
  /** Base64. */
  readonly sha256: string;
}

export interface Tallied {
  readonly totals: Sums;
  /** In the order of tracking and machine type. */
  readonly usage: readonly (Sums & Pick<Use, "tracking" | "machine_type">)[];
  /** Of earlier usage months, in their order. */
  readonly late: readonly (Sums & Pick<Use, "usage_month">)[];
  readonly rollups: Digested;
  readonly allocations: Digested & Parts & { readonly packs: bigint };
  readonly packs: Digested & Omit<PackRoll, "index">;
}

const NO_PARTS: Parts = { usage: 0n, included: 0n, overage: 0n, absorbed: 0n, not_billable: 0n };
const NO_ROLL: Omit<PackRoll, "index"> = {
  opening: 0n,
  bought: 0n,
  drawn: 0n,
  expired: 0n,
  refunded: 0n,
  closing: 0n,
};

export class Tally {
  readonly #month: string;
  readonly #machines = new Map<string, Sums & Pick<Use, "tracking" | "machine_type">>();
  readonly #late = new Map<string, Sums & Pick<Use, "usage_month">>();
  readonly #digests = {
    rollups: new LineDigest(),
    allocations: new LineDigest(),
    packs: new LineDigest(),
  };
  #totals = NO_SUMS;
  #parts = { ...NO_PARTS, packs: 0n };
  #roll = NO_ROLL;

  constructor(month: string) {
    this.#month = month;
  }

  add({ namespace, usages, rollups, shares, rolls }: OfNamespace): void {
    for (const use of usages) this.#use(use);
    for (const rollup of rollups) this.#digests.rollups.add(rollupLine(rollup));
    for (const share of shares) {
      this.#digests.allocations.add(allocationLine(namespace, share));
      const packs = share.packs.reduce((sum, { drawn }) => sum + drawn, 0n);
      this.#parts = added(this.#parts, { ...share, packs });
    }
    for (const { index, ...roll } of rolls) {
      this.#digests.packs.add(packLine(namespace, { index, ...roll }));
      this.#roll = added(this.#roll, roll);
    }
  }

  end(): Tallied {
    const { rollups, allocations, packs } = this.#digests;
    return {
      totals: this.#totals,
      usage: sorted(this.#machines),
      late: sorted(this.#late),
      rollups: digested(rollups),
      allocations: { ...digested(allocations), ...this.#parts },
      packs: { ...digested(packs), ...this.#roll },
    };
  }

  #use(use: Use): void {
    const { machine_type, tracking, usage_month } = use;
    this.#totals = addSums(this.#totals, use);
    const key = `${tracking}\n${machine_type}`;
    const known = this.#machines.get(key) ?? NO_SUMS;
    this.#machines.set(key, { ...addSums(known, use), machine_type, tracking });
    if (usage_month === this.#month) return;
    const before = this.#late.get(usage_month) ?? NO_SUMS;
    this.#late.set(usage_month, { ...addSums(before, use), usage_month });
  }
}

export function digested(digest: LineDigest): Digested {
  return { lines: digest.count, sha256: digest.end() };
}

/** The members of `a`, each with what `b` adds to it. */
function added<T extends Readonly<Record<keyof T, bigint>>>(
  a: T,
  b: Readonly<Record<keyof T, bigint>>,
): T {
  const names = Object.keys(a) as (keyof T)[];
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as T;
}

/** By UTF-16 code units of the keys, no two of which are one. */
function sorted<V>(byKey: ReadonlyMap<string, V>): V[] {
  return Array.from(byKey)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, value]) => value);
}

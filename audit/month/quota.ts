/** What a namespace's months were cut off with: limits, and what packs were drawn for (docs/quota.md). */
import type { Body } from "../../src/core/entry.ts";
import type { Closing } from "../prefix/state.ts";

export const MINUTE = 60_000n * 1_000_000n;

export type Limit = Body<"quota"> & { index: bigint };
/** A version of a pack. */
export type Version = Body<"pack"> & { index: bigint };

export interface Terms {
  /** In 10⁻⁶ compute-milliseconds. */
  limit: bigint;
  /** The most that is charged beyond the limit; undefined: whatever it is. */
  cap: bigint | undefined;
  unlimited: boolean;
  /** By the index of the version that counts, in the order in which they were drawn. */
  drawn: { index: bigint; amount: bigint }[];
}

interface Valid {
  pack: readonly Version[];
  version: Version;
}

export class Quota {
  readonly #limits: readonly Limit[];
  /** By pack, in the order of first versions. */
  readonly #packs: readonly (readonly Version[])[];
  readonly #closings: readonly Closing[];
  readonly #months = new Map<string, Terms>();
  readonly #spent = new Map<readonly Version[], bigint>();

  /** `closings` in the order of months. */
  constructor(
    { limits, packs }: { limits: readonly Limit[]; packs: readonly (readonly Version[])[] },
    closings: readonly Closing[],
  ) {
    this.#limits = limits;
    this.#packs = packs;
    this.#closings = closings;
  }

  /** Asked month by month, ascending, for packs are drawn in that order. `used`: what the quota counts of it. */
  month(month: string, used: bigint): Terms {
    const known = this.#months.get(month);
    if (known !== undefined) return known;
    const limit = this.#limits.findLast(
      ({ effective_from, index }) =>
        index < this.#cut(month) && effective_from.slice(0, 7) <= month,
    );
    const minutes = BigInt(limit?.monthly_minutes ?? 0) * MINUTE;
    const valid = this.#valid(month);
    const unlimited = minutes === 0n && valid.length === 0;
    const terms = { limit: minutes, cap: capOf(limit), unlimited };
    const whole = { ...terms, drawn: this.#draw(valid, above(used) - minutes) };
    this.#months.set(month, whole);
    return whole;
  }

  /** What was drawn from a pack for all months that were asked for. */
  spent(pack: readonly Version[]): bigint {
    return this.#spent.get(pack) ?? 0n;
  }

  /** The version that counts for a month; undefined where the pack came after its cut-off. */
  version(pack: readonly Version[], month: string): Version | undefined {
    const cut = this.#cut(month);
    return pack.findLast(({ index }) => index < cut);
  }

  /** The first closing of a log cuts off all months before it too. */
  #cut(month: string): bigint {
    return this.#closings.find((closing) => closing.month >= month)?.index ?? 2n ** 64n;
  }

  #valid(month: string): Valid[] {
    return this.#packs
      .flatMap((pack) => {
        const version = this.version(pack, month);
        return version === undefined ? [] : [{ pack, version }];
      })
      .filter(({ version: { expires_in, minutes, purchased_in } }) => {
        return minutes !== "0" && purchased_in <= month && month <= expires_in;
      })
      .sort((a, b) => compare(a.version.expires_in, b.version.expires_in));
  }

  #draw(valid: readonly Valid[], over: bigint): Terms["drawn"] {
    let rest = above(over);
    const drawn: Terms["drawn"] = [];
    for (const { pack, version } of valid) {
      const left = above(BigInt(version.minutes) * MINUTE - this.spent(pack));
      const isEnough = rest < left;
      const amount = isEnough ? rest : left;
      rest -= amount;
      this.#spent.set(pack, this.spent(pack) + amount);
      if (amount > 0n) drawn.push({ index: version.index, amount });
    }
    return drawn;
  }
}

function capOf(limit: Limit | undefined): bigint | undefined {
  if (limit?.beyond !== "bill") return 0n;
  return limit.cap === "" ? undefined : BigInt(limit.cap) * MINUTE;
}

export function above(amount: bigint): bigint {
  return amount > 0n ? amount : 0n;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

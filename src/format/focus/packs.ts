/** Which pack pays for which of a month's lines: packs in the order in which the month drew on them. */

/** One that somebody bought, or was granted. */
export interface Pack {
  /** Of the version that counts. */
  readonly index: bigint;
  /** First day of its month of purchase. */
  readonly purchased_in: string;
  /** By a credit run: nobody paid for it. */
  readonly isGranted: boolean;
}

export interface Draw {
  readonly pack: Pack;
  /** In units of 10⁻⁶ compute-milliseconds. */
  readonly drawn: bigint;
}

/** Of one namespace and usage month: a line gets what the level, that its amount moves, passes over. */
export class PackDeal {
  readonly #draws: readonly Draw[];
  #level = 0n;

  constructor(draws: readonly Draw[]) {
    this.#draws = draws;
  }

  /**
   * Packs of which something falls to the next line, or comes back. Lines that take back may lead below nothing,
   * or above the whole, before the last of them: that is the first pack's, or the last one's.
   *
   * @throws Error where there is no pack
   */
  deal(amount: bigint): Draw[] {
    if (amount === 0n) return [];
    if (this.#draws.length === 0) throw new Error("packs: drawn, and there is none");
    const before = this.#level;
    this.#level += amount;
    let below = 0n;
    return this.#draws.flatMap(({ pack, drawn }, at) => {
      const from = at === 0 ? undefined : 0n;
      const to = at === this.#draws.length - 1 ? undefined : drawn;
      const share = within(this.#level - below, from, to) - within(before - below, from, to);
      below += drawn;
      return share === 0n ? [] : [{ pack, drawn: share }];
    });
  }
}

/** Undefined: without a bound. */
function within(level: bigint, from: bigint | undefined, to: bigint | undefined): bigint {
  if (from !== undefined && level < from) return from;
  return to !== undefined && level > to ? to : level;
}

/**
 * How an allocation is dealt to what was used (docs/months.md, "Lines of the portal"): included minutes first,
 * then packs, then overage, then what is absorbed, in the order of the lines.
 *
 * Amounts are in units of 10⁻⁶ compute-milliseconds, and signed: what came late may take something back.
 */
import type { Share } from "./allocation.ts";

/** What of an allocation falls to a line: its billable usage, exactly. */
export interface Dealt {
  readonly included: bigint;
  /** Of all packs together. */
  readonly pack: bigint;
  readonly overage: bigint;
  readonly absorbed: bigint;
}
type Part = keyof Dealt;

const NOTHING: Dealt = { included: 0n, pack: 0n, overage: 0n, absorbed: 0n };
const PARTS: readonly Part[] = ["included", "pack", "overage", "absorbed"];

/** Of one namespace and usage month. */
export class Waterfall {
  /** In the order in which they fill, with how much of each there is; all have one sign. */
  readonly #basins: readonly (readonly [Part, bigint])[];
  readonly #sign: bigint;
  #level = 0n;

  constructor(share: Pick<Share, "included" | "packs" | "overage" | "absorbed">) {
    const pack = share.packs.reduce((sum, { drawn }) => sum + drawn, 0n);
    const parts = { ...share, pack };
    const filled = PARTS.flatMap((part) =>
      parts[part] === 0n ? [] : [[part, parts[part]] as const],
    );
    this.#sign = filled.some(([, amount]) => amount < 0n) ? -1n : 1n;
    // A correction takes back in the other order.
    this.#basins = this.#sign < 0n ? filled.reverse() : filled;
  }

  /** The line's part: by how much each basin fills, or empties, with it. @param billable of the next line, signed */
  deal(billable: bigint): Dealt {
    const before = this.#filled(this.#level);
    this.#level += billable;
    const after = this.#filled(this.#level);
    return {
      included: after.included - before.included,
      pack: after.pack - before.pack,
      overage: after.overage - before.overage,
      absorbed: after.absorbed - before.absorbed,
    };
  }

  /**
   * Lines that take back may lead below nothing or above the whole before the last of them: that is the first
   * basin's, or the last one's. Where lines come to nothing at all there is none, and it is `included`.
   */
  #filled(level: bigint): Dealt {
    const filled: Record<Part, bigint> = { ...NOTHING };
    let left = this.#sign * level;
    for (const [part, amount] of this.#basins) {
      const size = this.#sign * amount;
      const over = left - size;
      filled[part] = this.#sign * (over > 0n ? size : left);
      left = over > 0n ? over : 0n;
    }
    const [last] = this.#basins.at(-1) ?? ["included"];
    filled[last] += this.#sign * left;
    return filled;
  }
}

/** opening + bought − drawn − expired − refunded = closing (docs/months.md, "Packs"). */
import { writeMicro } from "../tally/record.ts";
import { above, MINUTE, type Quota, type Version } from "./quota.ts";

interface Rolling {
  quota: Quota;
  packs: readonly (readonly Version[])[];
  /** What was drawn from each for the months before. */
  spent: ReadonlyMap<readonly Version[], bigint>;
  /** What each closed the last closed month with; is set to what it closes this one with. */
  carried: Map<readonly Version[], bigint>;
}

const FIGURES = ["bought", "closing", "drawn", "expired", "opening", "refunded"] as const;
type Figure = (typeof FIGURES)[number];
/** `pack` is the index of the version that counts. Amounts are texts with six decimals. */
export type PackLine = Record<Figure | "pack", string>;

/** Of all packs that the month has something to say of, in the order of the versions that count. */
export function rollPacks({ carried, packs, quota, spent }: Rolling, month: string): PackLine[] {
  const lines: { index: bigint; line: PackLine }[] = [];
  for (const pack of packs) {
    const version = quota.version(pack, month);
    if (version === undefined) continue;
    const opening = carried.get(pack) ?? 0n;
    const before = spent.get(pack) ?? 0n;
    const drawn = quota.spent(pack) - before;
    const holds = above(BigInt(version.minutes) * MINUTE - before);
    const begun = version.purchased_in <= month ? holds : 0n;
    // What is not valid any more is not sold again.
    const over = version.expires_in < month;
    const stands = over && begun > opening ? opening : begun;
    const expired = version.expires_in <= month ? stands - drawn : 0n;
    const closing = stands - drawn - expired;
    carried.set(pack, closing);
    const bought = above(stands - opening);
    const refunded = above(opening - stands);
    const figures = { bought, closing, drawn, expired, opening, refunded };
    if (FIGURES.every((name) => figures[name] === 0n)) continue;
    lines.push({ index: version.index, line: written(figures, version.index) });
  }
  return lines.sort((a, b) => (a.index < b.index ? -1 : 1)).map(({ line }) => line);
}

function written(figures: Record<Figure, bigint>, index: bigint): PackLine {
  return {
    bought: writeMicro(figures.bought),
    closing: writeMicro(figures.closing),
    drawn: writeMicro(figures.drawn),
    expired: writeMicro(figures.expired),
    opening: writeMicro(figures.opening),
    pack: String(index),
    refunded: writeMicro(figures.refunded),
  };
}

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

type Line = { pack: string; [figure: string]: string };

/** Of all packs that the month has something to say of, in the order of the versions that count. */
export function rollPacks({ carried, packs, quota, spent }: Rolling, month: string): Line[] {
  const lines: { index: bigint; line: Line }[] = [];
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
    const figures = {
      bought: above(stands - opening),
      closing,
      drawn,
      expired,
      opening,
      refunded: above(opening - stands),
    };
    if (Object.values(figures).every((figure) => figure === 0n)) continue;
    const said = Object.entries(figures).map(([name, figure]) => [name, writeMicro(figure)]);
    lines.push({
      index: version.index,
      line: { ...Object.fromEntries(said), pack: String(version.index) },
    });
  }
  return lines.sort((a, b) => (a.index < b.index ? -1 : 1)).map(({ line }) => line);
}

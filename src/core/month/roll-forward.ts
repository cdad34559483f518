/**
 * What became of a namespace's packs in a month (docs/months.md, "Packs"):
 * opening + bought − drawn − expired − refunded = closing, exactly.
 */
import { MINUTE } from "../charge.ts";
import type { PackFact, QuotaFacts } from "../quota/quota.ts";
import { quotaOfMonth } from "./allocation.ts";

/** In units of 10⁻⁶ compute-milliseconds, none below zero. */
export interface PackRoll {
  /** Of the version that counts at the cut-off. */
  readonly index: bigint;
  readonly opening: bigint;
  readonly bought: bigint;
  readonly drawn: bigint;
  readonly expired: bigint;
  readonly refunded: bigint;
  readonly closing: bigint;
}

/**
 * Packs of which any figure is not zero, in the order of `index`.
 *
 * @param facts as of the cut-off of the month, which is the last of `closings`
 */
export function rollForward(facts: QuotaFacts, month: string): PackRoll[] {
  const before = facts.closings.findLast((closing) => closing.month < month);
  const cutOff = facts.closings.find((closing) => closing.month >= month);
  const openings = newest(facts.packs, before?.index ?? 0n);
  const versions = newest(facts.packs, cutOff?.index);
  const drawnBefore = drawsBefore(facts, month);
  const draws = drawsOf(facts, month);
  return [...versions.values()]
    .map((version) => {
      const { pack } = version;
      const spent = drawnBefore.get(pack) ?? 0n;
      const opened = openings.get(pack);
      const opening =
        before !== undefined && opened !== undefined && outlasts(opened, before.month)
          ? leftOf(opened, spent)
          : 0n;
      return roll(version, month, { opening, spent, drawn: draws.get(pack) ?? 0n });
    })
    .filter(({ index: _, ...figures }) => Object.values(figures).some((figure) => figure > 0n))
    .sort((a, b) => (a.index < b.index ? -1 : 1));
}

function roll(
  version: PackFact,
  month: string,
  { opening, spent, drawn }: { opening: bigint; spent: bigint; drawn: bigint },
): PackRoll {
  const { index, expires_in, purchased_in } = version;
  const left = purchased_in <= month ? leftOf(version, spent) : 0n;
  // What is not valid any more may be made smaller, and is not sold again.
  const standing = expires_in < month ? lesser(left, opening) : left;
  const rest = standing - drawn;
  const expired = expires_in <= month ? rest : 0n;
  return {
    index,
    opening,
    bought: standing > opening ? standing - opening : 0n,
    drawn,
    expired,
    refunded: opening > standing ? opening - standing : 0n,
    closing: rest - expired,
  };
}

/** Bought by the end of the month, and valid after it. */
function outlasts({ expires_in, purchased_in }: PackFact, month: string): boolean {
  return purchased_in <= month && month < expires_in;
}

function leftOf({ minutes }: PackFact, spent: bigint): bigint {
  const capacity = minutes * MINUTE;
  return capacity > spent ? capacity - spent : 0n;
}

function lesser(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

/** By pack, its newest version below an index; undefined: of all. */
function newest(packs: readonly PackFact[], below: bigint | undefined): Map<string, PackFact> {
  const seen = packs.filter(({ index }) => below === undefined || index < below);
  return new Map(seen.map((fact) => [fact.pack, fact]));
}

/** By pack, over all months before. */
function drawsBefore(facts: QuotaFacts, month: string): Map<string, bigint> {
  const sums = new Map<string, bigint>();
  for (const used of facts.used.keys()) {
    if (used >= month) continue;
    for (const [pack, drawn] of drawsOf(facts, used)) {
      sums.set(pack, (sums.get(pack) ?? 0n) + drawn);
    }
  }
  return sums;
}

function drawsOf(facts: QuotaFacts, month: string): Map<string, bigint> {
  return new Map(quotaOfMonth(facts, month).packs.map(({ pack, drawn }) => [pack, drawn]));
}

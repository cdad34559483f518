/** Parts as they are shown: rounded so that what is shown adds up (DESIGN §3). */
import { MINUTE, signedComputeMinutes } from "../charge.ts";

/**
 * Compute minutes of parts of one sum, by largest remainder: what is shown of them adds up to what is shown of
 * the sum, half away from zero, and none is a whole unit off. For showing, never for adding up.
 *
 * @param parts in 10⁻⁶ compute-milliseconds; may be below zero
 */
export function shownParts(parts: readonly bigint[], places = 2): string[] {
  const unit = MINUTE / 10n ** BigInt(places);
  const total = roundedUnits(
    parts.reduce((sum, part) => sum + part, 0n),
    unit,
  );
  const floors = parts.map((part) => floored(part, unit));
  const left = Number(total - floors.reduce((sum, floor) => sum + floor, 0n));
  // Among equal remainders the first: the same parts are always shown alike.
  const order = parts
    .map((part, at) => ({ at, remainder: part - floored(part, unit) * unit }))
    .sort((a, b) =>
      a.remainder === b.remainder ? a.at - b.at : a.remainder > b.remainder ? -1 : 1,
    );
  const raised = new Set(order.slice(0, left).map(({ at }) => at));
  return floors.map((floor, at) => {
    return signedComputeMinutes((floor + (raised.has(at) ? 1n : 0n)) * unit, places);
  });
}

function floored(part: bigint, unit: bigint): bigint {
  const quotient = part / unit;
  return part < 0n && quotient * unit !== part ? quotient - 1n : quotient;
}

/** Half away from zero. */
function roundedUnits(sum: bigint, unit: bigint): bigint {
  const magnitude = sum < 0n ? -sum : sum;
  const rounded = (2n * magnitude + unit) / (2n * unit);
  return sum < 0n ? -rounded : rounded;
}

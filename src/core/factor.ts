/** Cost factors as exact rationals: what one millisecond of a build counts as. */

/** Reduced: `n` ≥ 0 and `d` > 0 have no common divisor. */
export interface Factor {
  readonly n: bigint;
  readonly d: bigint;
}

export const NOTHING: Factor = { n: 0n, d: 1n };

/** The namespace's monthly minutes over 300,000: GitLab's factor for contributions to it. */
export const MONTHLY_SHARE = "monthly_minutes/300000";

const MONTHLY_DIVISOR = 300_000n;
const FACTOR = /^([0-9]{1,19})(?:\.([0-9]{1,19})|\/([0-9]{1,19}))?$/;

/**
 * The factor that a text of a card or of an entry names: decimal, `a/b`, or `MONTHLY_SHARE` of
 * `monthlyMinutes`. Undefined: none of these, a zero denominator, or a share of minutes that are
 * not known or, by 0, unlimited.
 */
export function parseFactor(text: string, monthlyMinutes = 0n): Factor | undefined {
  if (text === MONTHLY_SHARE) {
    return monthlyMinutes > 0n ? reduced(monthlyMinutes, MONTHLY_DIVISOR) : undefined;
  }
  const [, whole, decimals = "", divisor] = FACTOR.exec(text) ?? [];
  if (whole === undefined) return undefined;
  const d = divisor === undefined ? 10n ** BigInt(decimals.length) : BigInt(divisor);
  return d > 0n ? reduced(BigInt(whole + decimals), d) : undefined;
}

/** The reduced fraction `a/b` of entries. */
export function formatFactor({ n, d }: Factor): string {
  return `${n}/${d}`;
}

export function lower(a: Factor, b: Factor): Factor {
  return a.n * b.d <= b.n * a.d ? a : b;
}

function reduced(n: bigint, d: bigint): Factor {
  let [divisor, rest] = [d, n];
  while (rest > 0n) [divisor, rest] = [rest, divisor % rest];
  return { n: n / divisor, d: d / divisor };
}

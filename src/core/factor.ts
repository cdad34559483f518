/** Cost factors as exact rationals: what one millisecond of a build counts as. */

/** Reduced: `n` ≥ 0 and `d` > 0 have no common divisor. */
export interface Factor {
  readonly n: bigint;
  readonly d: bigint;
}

export const NOTHING: Factor = { n: 0n, d: 1n };
export const ONE: Factor = { n: 1n, d: 1n };

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

type Texts = Readonly<Record<string, string>>;

/** As the card writes it: of the machine type, else of all that it does not name. */
export function runnerFactor(
  { runner_factors }: { readonly runner_factors: Texts },
  machineType: string,
): string | undefined {
  return member(runner_factors, machineType) ?? member(runner_factors, "*");
}

/** As the card writes it. */
export function projectFactor(
  { project_factors }: { readonly project_factors: Texts },
  projectClass: string,
): string | undefined {
  return member(project_factors, projectClass);
}

/** Own members only: a machine type may be called `constructor`. */
function member(texts: Texts, name: string): string | undefined {
  return Object.hasOwn(texts, name) ? texts[name] : undefined;
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

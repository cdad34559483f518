/** What each leg says of a month, and where two of them do not say the same. */
import { CLOSING_SET } from "../export/closing-set.ts";

/**
 * In the order in which they are shown. Counts are integers, amounts have six decimals, and may be below zero.
 * `hosted_…` are of hosted runners alone, `packs_…` of the roll-forward of packs; of a file it is its rows and its hash.
 */
export const FIGURES = [
  ...(["jobs", "duration_ms", "gross_compute_ms", "adjustment_compute_ms"] as const),
  ...(["net_compute_ms", "billable_compute_ms", "not_billable_compute_ms"] as const),
  ...(["hosted_jobs", "hosted_duration_ms"] as const),
  ...(["hosted_gross_compute_ms", "hosted_net_compute_ms"] as const),
  ...(["included_compute_ms", "pack_compute_ms"] as const),
  ...(["overage_compute_ms", "absorbed_compute_ms"] as const),
  ...(["packs_opening_compute_ms", "packs_bought_compute_ms", "packs_drawn_compute_ms"] as const),
  ...(["packs_expired_compute_ms", "packs_refunded_compute_ms"] as const),
  ...(["packs_closing_compute_ms", "events", "differing_rows"] as const),
  ...(["rollups_sha256", "allocations_sha256", "packs_sha256", "accounts_sha256"] as const),
  ...CLOSING_SET.flatMap((name) => [`${name}.rows`, `${name}.sha256`] as const),
] as const;
export type Figure = (typeof FIGURES)[number];
export type Figures = Partial<Record<Figure, string>>;

/** One place that a month's figures stand at: those that it has. */
export interface Leg {
  leg: string;
  figures: Figures;
}

/** One figure, wherever it stands. */
export interface ShownFigure {
  figure: Figure;
  legs: { leg: string; value: string }[];
}

/** Held against the first leg that has the figure. */
export interface TieDifference {
  figure: Figure;
  leg: string;
  value: string;
  against: string;
  expected: string;
}

/** In the order of figures, and in each in that of legs; what no leg has is left out. */
export function figuresOf(legs: readonly Leg[]): ShownFigure[] {
  return FIGURES.flatMap((figure) => {
    const found = legs.flatMap(({ leg, figures }) => {
      const value = figures[figure];
      return value === undefined ? [] : [{ leg, value }];
    });
    return found.length === 0 ? [] : [{ figure, legs: found }];
  });
}

export function differencesIn(shown: readonly ShownFigure[]): TieDifference[] {
  return shown.flatMap(({ figure, legs: [first, ...others] }) => {
    if (first === undefined) return [];
    const against = { against: first.leg, expected: first.value };
    return others
      .filter(({ value }) => value !== first.value)
      .map(({ leg, value }) => ({ figure, leg, value, ...against }));
  });
}

/** Ratios, not times: both sides in one run, A B A B, medians of the rounds. */

export const ROUNDS = 7;

/** One measured row; `a` and `b` are operations per second (or seconds, where said) per round. */
export interface Row {
  row: string;
  against: string;
  /** The ratio that DESIGN asks for; `at-most` rows must not pass it. */
  bound: { kind: "at-least" | "at-most"; ratio: number };
  unit: string;
  a: number[];
  b: number[];
  /** What else was seen, such as p99. */
  notes?: Record<string, string>;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((x, y) => x - y);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

export const ratioOf = (row: Row): number => median(row.a) / median(row.b);

export function holds(row: Row): boolean {
  const ratio = ratioOf(row);
  return row.bound.kind === "at-least" ? ratio >= row.bound.ratio : ratio <= row.bound.ratio;
}

/**
 * Runs both sides in turn. Each returns its figure for one round; the first round of each warms up
 * and is not counted.
 */
export async function alternate(
  a: (round: number) => Promise<number>,
  b: (round: number) => Promise<number>,
  rounds = ROUNDS,
): Promise<{ a: number[]; b: number[] }> {
  const figures = { a: [] as number[], b: [] as number[] };
  for (let round = 0; round <= rounds; round += 1) {
    const [first, second] = [await a(round), await b(round)];
    if (round === 0) continue;
    figures.a.push(first);
    figures.b.push(second);
  }
  return figures;
}

/** Operations per second of one run of `work`. */
export async function rate(operations: number, work: () => Promise<unknown>): Promise<number> {
  return operations / (await seconds(work));
}

export async function seconds(work: () => Promise<unknown>): Promise<number> {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) / 1e9;
}

export function table(rows: readonly Row[]): string {
  const lines = rows.map((row) => {
    const sign = row.bound.kind === "at-least" ? "≥" : "≤";
    const notes = Object.entries(row.notes ?? {}).map(([name, value]) => `${name} ${value}`);
    return [
      row.row,
      row.against,
      `${sign} ${row.bound.ratio}`,
      ratioOf(row).toFixed(2),
      `${figure(median(row.a))} : ${figure(median(row.b))} ${row.unit}`,
      notes.join(", "),
      holds(row) ? "yes" : "NO",
    ];
  });
  const head = ["row", "against", "bound", "ratio", "medians", "also", "holds"];
  return [head, head.map(() => "---"), ...lines]
    .map((cells) => `| ${cells.join(" | ")} |`)
    .join("\n");
}

const figure = (value: number): string =>
  value >= 100 ? Math.round(value).toString() : value.toPrecision(3);

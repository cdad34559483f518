/** Ratios, not times: both sides in one run, A B A B, medians of the rounds. */

export const ROUNDS = 7;

/** One measured row; `a` and `b` are operations per second (or seconds, where said) per round. */
export interface Row {
  row: string;
  against: string;
  /** The ratio that DESIGN asks for, where it does; `at-most` rows must not pass it. */
  bound?: { kind: "at-least" | "at-most"; ratio: number };
  /** Peaks in MiB, by what they are of; none may be above `most`. */
  memory?: { peaks: Readonly<Record<string, number>>; most: number };
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
  const { memory } = row;
  const peaks = Object.values(memory?.peaks ?? {});
  if (memory !== undefined && peaks.some((peak) => peak > memory.most)) return false;
  if (row.bound === undefined) return true;
  const ratio = ratioOf(row);
  return row.bound.kind === "at-least" ? ratio >= row.bound.ratio : ratio <= row.bound.ratio;
}

/** What one round of a side gives: operations per second, or seconds. */
type Side = (round: number) => Promise<number>;

/**
 * Runs both sides in turn; `rounds` are counted, after one of each that warms up. Preparation is the
 * side's own business, outside of what it times.
 */
export async function alternate(options: {
  a: Side;
  b: Side;
  rounds: number;
  say: (text: string) => void;
}): Promise<{ a: number[]; b: number[] }> {
  const { a, b, rounds, say } = options;
  const figures = { a: [] as number[], b: [] as number[] };
  for (let round = 0; round <= rounds; round += 1) {
    const [first, second] = [await a(round), await b(round)];
    say(
      `${round === 0 ? "warm-up" : `round ${round} of ${rounds}`}: ${figure(first)} : ${figure(second)}`,
    );
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

/** @param judge whether to say which ratios hold */
export function table(rows: readonly Row[], judge: boolean): string {
  const lines = rows.map((row) => {
    const notes = Object.entries({ ...memoryNotes(row), ...row.notes }).map(
      ([name, value]) => `${name} ${value}`,
    );
    return [
      row.row,
      row.against,
      written(row.bound),
      ratioOf(row).toFixed(2),
      `${figure(median(row.a))} : ${figure(median(row.b))} ${row.unit}`,
      notes.join(", "),
      ...(judge ? [row.bound === undefined ? "" : holds(row) ? "yes" : "NO"] : []),
    ];
  });
  const head = ["row", "against", "bound", "ratio", "medians", "also", ...(judge ? ["holds"] : [])];
  return [head, head.map(() => "---"), ...lines]
    .map((cells) => `| ${cells.join(" | ")} |`)
    .join("\n");
}

function memoryNotes({ memory }: Row): Record<string, string> {
  if (memory === undefined) return {};
  const peaks = Object.entries(memory.peaks).map(([of, peak]) => [of, `${peak.toFixed(0)} MiB`]);
  return { ...Object.fromEntries(peaks), "memory bound": `${memory.most} MiB` };
}

function written(bound: Row["bound"]): string {
  return bound === undefined ? "" : `${bound.kind === "at-least" ? "≥" : "≤"} ${bound.ratio}`;
}

const figure = (value: number): string =>
  value >= 100 ? Math.round(value).toString() : value.toPrecision(3);

/**
 * A file's rows beside those that the log gives, one by one. Their order is no order of their cells, so that
 * where two are not about the same, both sides are looked ahead for the next that are.
 */
import type { Row } from "../../../src/core/export/tables.ts";
import { type Comparing, type Difference, differing, nameOf, sortingOf } from "../compare.ts";

/** Rows that are looked ahead at most: behind more of them that are missing, each is another. */
const AHEAD_MAX = 256;

/** @param comparing its `order` are the columns that tell what a row is about */
export async function* compareInPlace(
  file: AsyncIterable<Row>,
  log: Iterable<Row>,
  comparing: Comparing,
): AsyncGenerator<Difference> {
  const sorting = sortingOf(comparing);
  const about = (row: Row): string => JSON.stringify(sorting.map(({ at }) => row[at] ?? null));
  const [theirs, ours] = [new Ahead(file, about), new Ahead(log, about)];
  for (;;) {
    await Promise.all([theirs.fill(1), ours.fill(1)]);
    const [said, given] = [theirs.rows[0], ours.rows[0]];
    if (said === undefined && given === undefined) return;
    if (said?.about === given?.about) {
      yield* pair(theirs, ours, comparing);
      continue;
    }
    await Promise.all([theirs.fill(AHEAD_MAX), ours.fill(AHEAD_MAX)]);
    const before = nextAlike(theirs.rows, ours.rows);
    // As many of both are said to be each other's: a row that was changed is not one that is gone.
    const changed = Math.min(before.theirs, before.ours);
    for (let i = 0; i < changed; i += 1) yield* pair(theirs, ours, comparing);
    for (let i = changed; i < before.theirs; i += 1) {
      const detail = `the log gives no such row here: ${nameOf(theirs.take(), sorting)}`;
      yield { row: theirs.taken, detail };
    }
    for (let i = changed; i < before.ours; i += 1) {
      const detail = `a row is missing before it: ${nameOf(ours.take(), sorting)}`;
      yield { row: theirs.taken + 1n, detail };
    }
  }
}

function* pair(theirs: Ahead, ours: Ahead, comparing: Comparing): Generator<Difference> {
  const detail = differing(theirs.take(), ours.take(), comparing);
  if (detail !== "") yield { row: theirs.taken, detail };
}

interface About {
  about: string;
  row: Row;
}

class Ahead {
  readonly rows: About[] = [];
  /** How many were taken. */
  taken = 0n;
  readonly #rest: AsyncIterator<Row> | Iterator<Row>;
  readonly #about: (row: Row) => string;

  constructor(rows: AsyncIterable<Row> | Iterable<Row>, about: (row: Row) => string) {
    this.#rest =
      Symbol.asyncIterator in rows ? rows[Symbol.asyncIterator]() : rows[Symbol.iterator]();
    this.#about = about;
  }

  /** Until there are as many, or all that are left. */
  async fill(count: number): Promise<void> {
    while (this.rows.length < count) {
      const { done, value } = await this.#rest.next();
      if (done) return;
      this.rows.push({ about: this.#about(value), row: value });
    }
  }

  take(): Row {
    const [first] = this.rows.splice(0, 1);
    if (first === undefined) throw new Error("compare: there is no row");
    this.taken += 1n;
    return first.row;
  }
}

/** How many rows stand before the next that both sides have, as few as can be. */
function nextAlike(
  theirs: readonly About[],
  ours: readonly About[],
): { theirs: number; ours: number } {
  if (theirs.length === 0 || ours.length === 0) return { theirs: theirs.length, ours: ours.length };
  const places = new Map(ours.map(({ about }, at) => [about, at] as const).reverse());
  let nearest: { theirs: number; ours: number } | undefined;
  for (const [at, { about }] of theirs.entries()) {
    const place = places.get(about);
    if (place === undefined) continue;
    if (nearest === undefined || at + place < nearest.theirs + nearest.ours) {
      nearest = { theirs: at, ours: place };
    }
  }
  return nearest ?? { theirs: 1, ours: 1 };
}

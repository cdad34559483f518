/** Counters of one key that came, while they come: as many numbers as there are gaps. */
interface Run {
  first: bigint;
  last: bigint;
}

export class Runs {
  /** Ascending, and apart from each other. */
  readonly #runs: Run[] = [];

  add(counter: bigint): void {
    const runs = this.#runs;
    let next = runs.length;
    // From the end: nearly all come in their order.
    while (next > 0 && counter < (runs[next - 1]?.first ?? 0n)) next -= 1;
    const [before, after] = [runs[next - 1], runs[next]];
    if (before !== undefined && counter <= before.last) return;
    const follows = before !== undefined && before.last + 1n === counter;
    const precedes = after !== undefined && after.first === counter + 1n;
    if (follows) {
      before.last = precedes ? after.last : counter;
      if (precedes) runs.splice(next, 1);
    } else if (precedes) after.first = counter;
    else runs.splice(next, 0, { first: counter, last: counter });
  }

  /** The highest; 0 while there is none. */
  get last(): bigint {
    return this.#runs.at(-1)?.last ?? 0n;
  }

  /** Whether each of first … last is among them. */
  reach(first: bigint, last: bigint): boolean {
    if (last < first) return true;
    return this.#runs.some((run) => run.first <= first && run.last >= last);
  }
}

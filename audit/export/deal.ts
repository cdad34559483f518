/** A month's allocation, dealt to the lines that it is of (docs/months.md). */

/** A basin lies from … to, as the sum over lines rises; the first has no bottom, and the last no top. */
interface Basin {
  place: number;
  from: bigint | undefined;
  to: bigint | undefined;
}

/**
 * Takes a line's usage, line by line, and gives what of it falls to each basin: always all of it. What lines
 * before the last have above the whole, or below nothing, is the outermost basins'.
 *
 * @param allocation at least one, in the order in which usage fills them, all of one sign
 */
export function dealer(allocation: readonly bigint[]): (usage: bigint) => bigint[] {
  const basins = layOut(allocation);
  // What is taken back is taken from the last basin first.
  const sign = allocation.some((amount) => amount < 0n) ? -1n : 1n;
  let level = 0n;
  return (usage) => {
    const before = sign * level;
    level += usage;
    const after = sign * level;
    const dealt = allocation.map(() => 0n);
    for (const basin of basins)
      dealt[basin.place] = sign * (within(basin, after) - within(basin, before));
    return dealt;
  };
}

function layOut(allocation: readonly bigint[]): Basin[] {
  const places = [...allocation.keys()].filter((place) => allocation[place] !== 0n);
  if (allocation.some((amount) => amount < 0n)) places.reverse();
  if (places.length === 0) places.push(0);
  let top = 0n;
  return places.map((place, i) => {
    const from = i === 0 ? undefined : top;
    const amount = allocation[place] ?? 0n;
    top += amount < 0n ? -amount : amount;
    return { place, from, to: i === places.length - 1 ? undefined : top };
  });
}

function within({ from, to }: Basin, level: bigint): bigint {
  if (from !== undefined && level < from) return from;
  return to !== undefined && level > to ? to : level;
}

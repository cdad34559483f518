/** Piles that stay in memory: for logs of which it is known that they are small. */
import type { OpenPiles } from "./piles.ts";

export const memoryPiles: OpenPiles = () => {
  const piles = new Map<number, Uint8Array[]>();
  return {
    add: (pile, record) => {
      const records = piles.get(pile);
      if (records === undefined) piles.set(pile, [record.slice()]);
      else records.push(record.slice());
    },
    numbers: () => [...piles.keys()].sort((a, b) => a - b),
    read: (pile) => piles.get(pile) ?? [],
  };
};

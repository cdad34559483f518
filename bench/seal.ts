/** The cost of a seal follows what is new, not what is old. */
import { type Context, HISTORY_NAMESPACES } from "./history.ts";
import type { Ledger } from "./ledger.ts";
import { alternate, type Row, seconds } from "./measure.ts";

export async function seal({ histories, sizes, say }: Context): Promise<Row> {
  const { large, small, sealed, rounds } = sizes;
  const [a, b] = [timer(await histories(large), sealed), timer(await histories(small), sealed)];
  const figures = await alternate({ a, b, rounds, say });
  return {
    row: `sealing ${sealed} entries, log of ${large}`,
    against: `same, log of ${small}`,
    bound: { kind: "at-most", ratio: 1.5 },
    unit: "s",
    ...figures,
  };
}

function timer({ append, fleet, seal }: Ledger, entries: number): () => Promise<number> {
  return async () => {
    await append(fleet.verdicts(entries, HISTORY_NAMESPACES));
    return await seconds(seal);
  };
}

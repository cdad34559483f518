/** What became of each pack in a month: opening + bought − drawn − expired − refunded = closing. */
import { type Row, TABLES } from "../../core/export/tables.ts";
import { packLine } from "../../core/month/lines.ts";
import { packIdIn } from "../../core/pack.ts";
import { type CountedNamespace, countNamespaces } from "../month/namespaces.ts";
import { cutOffOf } from "./cut-off.ts";
import type { Origin, Sheet } from "./source.ts";

/** The lines that `packs_sha256` of a closed month is of. */
export function packRollforward(origin: Origin): Sheet {
  return { columns: TABLES.pack_rollforward, pages: pages(origin) };
}

async function* pages(origin: Origin): AsyncGenerator<Row[]> {
  const cutOff = await cutOffOf(origin);
  const counted = countNamespaces(origin.tx, origin.log, cutOff);
  for await (const batch of counted) yield batch.flatMap(rowsOf);
}

function rowsOf({ namespace, packs, rolls }: CountedNamespace): Row[] {
  const versions = new Map(packs.map((version) => [version.index, version]));
  return rolls.map((roll) => {
    const version = versions.get(roll.index);
    if (version === undefined) throw new Error("pack roll-forward: of no pack");
    const { expires_in, pack, purchased_in } = version;
    const line = packLine(namespace, roll);
    return [
      ...[namespace, line.pack, packIdIn(pack), purchased_in, expires_in],
      ...[line.opening, line.bought, line.drawn, line.expired, line.refunded, line.closing],
    ];
  });
}

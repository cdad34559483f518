/** How each namespace's usage of a month was split, and who pays for it. */
import { formatSignedComputeMs } from "../../core/charge.ts";
import { type Row, TABLES } from "../../core/export/tables.ts";
import { canonical } from "../../core/json.ts";
import { allocationLine } from "../../core/month/lines.ts";
import type { Payer } from "../../store/accounts.ts";
import { readPayers } from "../../store/accounts.ts";
import { endOf } from "../month/conditions.ts";
import { type CountedNamespace, countNamespaces } from "../month/namespaces.ts";
import { cutOffOf } from "./cut-off.ts";
import type { Origin, Sheet } from "./source.ts";

/** The lines that `allocations_sha256` of a closed month is of. */
export function allocation(origin: Origin): Sheet {
  return { columns: TABLES.allocation, pages: pages(origin) };
}

async function* pages(origin: Origin): AsyncGenerator<Row[]> {
  const { tx, log } = origin;
  const cutOff = await cutOffOf(origin);
  const at = { until: endOf(cutOff.month), below: cutOff.index };
  for await (const batch of countNamespaces(tx, log, cutOff)) {
    const names = batch.map(({ namespace }) => namespace);
    const payers = await readPayers(tx, log, names, at);
    yield batch.flatMap((each) => rowsOf(each, payers.get(each.namespace)));
  }
}

function rowsOf({ namespace, shares }: CountedNamespace, payer: Payer | undefined): Row[] {
  return shares.map((share) => {
    const line = allocationLine(namespace, share);
    const drawn = share.packs.reduce((sum, pack) => sum + pack.drawn, 0n);
    return [
      ...[namespace, line.usage_month, payer?.account_id || null, payer?.subscription_id || null],
      ...[line.usage, line.included, formatSignedComputeMs(drawn), line.overage, line.absorbed],
      ...[line.not_billable, canonical(line.packs)],
    ];
  });
}

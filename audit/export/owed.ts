/** Rows about what a namespace owes and has, and of who pays: in the order in which they are told. */
import type { Row } from "../../src/core/export/tables.ts";
import { canonical } from "../../src/core/json.ts";
import type { Account, MonthShare, Terms } from "../month/terms.ts";
import { micro, writeMicro } from "../tally/record.ts";

/** Of `allocation`: one for each usage month. */
export function* allocationRows(
  namespace: string,
  { account, allocations }: MonthShare,
): Generator<Row> {
  for (const line of allocations) {
    const drawn = line.packs.reduce((sum, pack) => sum + micro(pack.drawn), 0n);
    yield [
      ...[namespace, line.usage_month],
      ...[account?.account_id ?? null, orNull(account?.subscription_id)],
      ...[line.usage, line.included, writeMicro(drawn), line.overage, line.absorbed],
      ...[line.not_billable, canonical(line.packs)],
    ];
  }
}

/** Of `pack_rollforward`: one for each pack that the month has something to say of. */
export function* packRows(namespace: string, { packs }: MonthShare, terms: Terms): Generator<Row> {
  for (const { bought, closing, drawn, expired, opening, pack, refunded } of packs) {
    const { expires_in, pack_id, purchased_in } = terms.version(pack) ?? {};
    yield [
      ...[namespace, pack, orNull(pack_id), orNull(purchased_in), orNull(expires_in)],
      ...[opening, bought, drawn, expired, refunded, closing],
    ];
  }
}

/** Of `account_map`: what stands below an index, who pays for all others first. */
export function* accountRows(
  accounts: ReadonlyMap<string, readonly Account[]>,
  below: bigint,
): Generator<Row> {
  const namespaces = [...accounts.keys()].sort((a, b) => {
    if (a === "" || b === "") return a.length - b.length;
    return BigInt(a) < BigInt(b) ? -1 : 1;
  });
  for (const namespace of namespaces) {
    const told = (accounts.get(namespace) ?? []).filter(({ index }) => index < below);
    for (const account of told.sort(byStart)) {
      const { account_id, effective_from, source, source_version, subscription_id } = account;
      yield [
        ...[orNull(namespace), effective_from, account_id, orNull(subscription_id)],
        ...[orNull(source), source_version, String(account.index)],
      ];
    }
  }
}

function byStart(a: Account, b: Account): number {
  if (a.effective_from !== b.effective_from) return a.effective_from < b.effective_from ? -1 : 1;
  return a.index < b.index ? -1 : 1;
}

function orNull(text: string | undefined): string | null {
  return text || null;
}

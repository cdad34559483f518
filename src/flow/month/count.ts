/**
 * A billing month counted from its entries: allocations, packs, totals and the digests of `month_closed`
 * (docs/months.md). Nothing of it is ever in memory but the namespaces that are being looked at.
 */
import { parseComputeMs, parseSignedComputeMs } from "../../core/charge.ts";
import type { Body } from "../../core/entry.ts";
import type { Share } from "../../core/month/allocation.ts";
import { accountLine, formatSums, LineDigest, rollupLine } from "../../core/month/lines.ts";
import type { PackRoll } from "../../core/month/roll-forward.ts";
import { type Digested, digested, type Tallied, Tally } from "../../core/month/tally.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readBillable } from "../../store/month-conditions.ts";
import { readShown } from "../../store/month-figures.ts";
import { snapshot } from "../usage/show.ts";
import { endOf } from "./conditions.ts";
import { cutOffAt } from "./cut-off.ts";
import { countNamespaces } from "./namespaces.ts";
import { bePatient } from "./patience.ts";

export interface Counting {
  /** Sees the figures at the cut-off or beyond. */
  tx: Transaction;
  log: string;
  month: string;
  /** Of the cut-off. */
  closing: bigint;
}

/** What the rows of a closed month are written from, as they are counted. */
export interface Sink {
  allocations(lines: readonly { namespace: string; share: Share }[]): Promise<void>;
  packs(lines: readonly { namespace: string; roll: PackRoll }[]): Promise<void>;
}

export interface Counted extends Tallied {
  accounts: Digested;
}

/** @throws Error where the quota counts a month otherwise: one of both is wrong */
export async function countMonth(counting: Counting, sink?: Sink): Promise<Counted> {
  const { tx, log, month, closing } = counting;
  const tally = new Tally(month);
  const cutOff = await cutOffAt(tx, log, { month, asOf: closing });
  for await (const batch of countNamespaces(tx, log, cutOff)) {
    for (const each of batch) tally.add(each);
    if (sink === undefined) continue;
    await sink.allocations(
      batch.flatMap(({ namespace, shares }) => shares.map((share) => ({ namespace, share }))),
    );
    await sink.packs(
      batch.flatMap(({ namespace, rolls }) => rolls.map((roll) => ({ namespace, roll }))),
    );
  }
  return { ...tally.end(), accounts: await countAccounts(counting) };
}

/** Who pays for each namespace that is billed. */
export async function countAccounts({ tx, log, month, closing }: Counting): Promise<Digested> {
  const accounts = new LineDigest();
  for (const each of await readBillable(tx, log, month, { until: endOf(month), below: closing })) {
    const { account_id, subscription_id, namespace_id } = each;
    if (account_id === null || subscription_id === null) continue;
    accounts.add(accountLine({ account_id, subscription_id, namespace_id }));
  }
  return digested(accounts);
}

/** What of `month_closed` is counted. */
export type Figures = Pick<
  Body<"month_closed">,
  | "accounts_sha256"
  | "allocations"
  | "allocations_sha256"
  | "packs_sha256"
  | "rollups_sha256"
  | "totals"
>;

export function figuresFrom({ accounts, allocations, packs, rollups, totals }: Counted): Figures {
  return {
    accounts_sha256: accounts.sha256,
    allocations: String(allocations.lines),
    allocations_sha256: allocations.sha256,
    packs_sha256: packs.sha256,
    rollups_sha256: rollups.sha256,
    totals: formatSums(totals),
  };
}

/** The digest of `rollups_sha256`, of what the public view shows. */
export async function digestShown(sql: Sql, log: string, month: string): Promise<string> {
  const digest = new LineDigest();
  await snapshot(sql, async (tx) => {
    await bePatient(tx);
    for await (const { adjustment, billable, gross, ...row } of readShown(tx, { log, month })) {
      const adjusted = parseSignedComputeMs(adjustment);
      digest.add(
        rollupLine({
          ...row,
          jobs: BigInt(row.jobs),
          duration_ms: BigInt(row.duration_ms),
          compute_ms: parseComputeMs(gross),
          billable_compute_ms: parseSignedComputeMs(billable) - adjusted,
          adjustment: adjusted,
        }),
      );
    }
  });
  return digest.end();
}

/** What a namespace's usage of a month is split by, and who pays for it. */
import type { Body } from "../../src/core/entry.ts";
import type { Posting } from "../money/ledger.ts";
import type { Closing } from "../prefix/state.ts";
import { monthAfter } from "../rating.ts";
import { type AllocationLine, allocate, drawBefore } from "./allocation.ts";
import { above, type Limit, Quota, type Version } from "./quota.ts";
import { type PackLine, rollPacks } from "./roll.ts";

export type Account = Body<"account"> & { index: bigint };

/** What one month comes to for one namespace. */
export interface MonthShare {
  closing: Closing;
  /** What is posted to the month, in the order of usage months and trackings. */
  postings: Posting[];
  allocations: AllocationLine[];
  packs: PackLine[];
  /** Who pays for the namespace, whether there is anything to pay or not. */
  account: Account | undefined;
}

/** Those that `State` has, or that an entry alone has told. */
export interface Told {
  /** By namespace, `""` for all others. */
  accounts: ReadonlyMap<string, readonly Account[]>;
  limits: ReadonlyMap<string, readonly Limit[]>;
  /** By pack: all versions, in the order of first versions. */
  packs: ReadonlyMap<string, readonly Version[]>;
}

export class Terms {
  readonly #told: Told;
  /** By namespace. */
  readonly #packs = new Map<string, (readonly Version[])[]>();
  /** By the index of each version. */
  readonly #versions = new Map<string, Version>();

  constructor(told: Told) {
    this.#told = told;
    for (const versions of told.packs.values()) {
      const namespace = versions[0]?.namespace_id ?? "";
      this.#packs.set(namespace, [...(this.#packs.get(namespace) ?? []), versions]);
      for (const version of versions) this.#versions.set(String(version.index), version);
    }
  }

  /** In the order of `closings`, which is that of months: packs are drawn month by month. */
  *months(
    namespace: string,
    postings: readonly Posting[],
    closings: readonly Closing[],
  ): Generator<MonthShare> {
    const packs = this.#packs.get(namespace) ?? [];
    const quota = new Quota({ limits: this.#told.limits.get(namespace) ?? [], packs }, closings);
    const carried = new Map<readonly Version[], bigint>();
    for (const closing of closings) {
      const { month } = closing;
      const atLast = new Map(packs.map((pack) => [pack, quota.spent(pack)]));
      drawBefore(quota, month, postings);
      const spent = new Map(packs.map((pack) => [pack, quota.spent(pack)]));
      // Months that are not cut off yet have used up of what the last one closed with.
      for (const [pack, closed] of carried) {
        const since = (spent.get(pack) ?? 0n) - (atLast.get(pack) ?? 0n);
        carried.set(pack, above(closed - since));
      }
      yield {
        closing,
        postings: postings.filter(({ billing_month }) => billing_month === month).sort(byUsage),
        allocations: [...allocate(quota, month, postings)],
        packs: rollPacks({ quota, packs, spent, carried }, month),
        account: this.account(namespace, closing),
      };
    }
  }

  /** In force at the month's end, as of its cut-off. */
  account(
    namespace: string,
    { index, month }: { index: bigint; month: string },
  ): Account | undefined {
    const over = `${monthAfter(month)}T00:00:00.000Z`;
    return [namespace, ""]
      .map((name) =>
        this.#told.accounts
          .get(name)
          ?.findLast((one) => one.index < index && one.effective_from < over),
      )
      .find((one) => one !== undefined);
  }

  /** All names of accounts and subscriptions, some of them more than once. */
  *accountNames(): Generator<string> {
    for (const accounts of this.#told.accounts.values()) {
      for (const { account_id, subscription_id } of accounts) {
        yield account_id;
        yield subscription_id;
      }
    }
  }

  /** The version of a pack that has this index. */
  version(index: string): Version | undefined {
    return this.#versions.get(index);
  }
}

function byUsage(a: Posting, b: Posting): number {
  if (a.usage_month !== b.usage_month) return a.usage_month < b.usage_month ? -1 : 1;
  return a.tracking < b.tracking ? -1 : 1;
}

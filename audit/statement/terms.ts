/** What a namespace's usage of a month is split by, and who pays for it. */
import type { Body } from "../../src/core/entry.ts";
import type { Json } from "../../src/core/json.ts";
import type { Posting } from "../money/ledger.ts";
import { allocate } from "../month/allocation.ts";
import { type Limit, Quota, type Version } from "../month/quota.ts";
import { rollPacks } from "../month/roll.ts";
import type { Closing } from "../prefix/state.ts";
import { monthAfter } from "../rating.ts";
import { written } from "./sums.ts";

type Account = Body<"account"> & { index: bigint };
type AllocationLine = { [name: string]: string | { drawn: string; pack: string }[] };
type PackLine = { [name: string]: string };

export class Terms {
  readonly #limits = new Map<string, Limit[]>();
  /** By namespace and pack: all versions. */
  readonly #packs = new Map<string, Map<string, Version[]>>();
  readonly #accounts = new Map<string, Account[]>();

  limit(limit: Limit): void {
    push(this.#limits, limit.namespace_id, limit);
  }

  pack(version: Version): void {
    const { namespace_id, pack_id, source } = version;
    const own = this.#packs.get(namespace_id) ?? new Map<string, Version[]>();
    this.#packs.set(namespace_id, own);
    push(own, `${source}\n${pack_id}`, version);
  }

  account(account: Account): void {
    push(this.#accounts, account.namespace_id, account);
  }

  /** One namespace's lines; its months are asked for in their order, as packs are drawn. */
  split(
    namespace: string,
    postings: readonly Posting[],
    { closings, cutOff }: { closings: readonly Closing[]; cutOff: Closing },
  ) {
    const packs = [...(this.#packs.get(namespace)?.values() ?? [])];
    const quota = new Quota({ limits: this.#limits.get(namespace) ?? [], packs }, closings);
    const carried = new Map<readonly Version[], bigint>();
    let allocations: AllocationLine[] = [];
    let rolls: PackLine[] = [];
    for (const { month } of closings) {
      if (month > cutOff.month) break;
      const spent = new Map(packs.map((pack) => [pack, quota.spent(pack)]));
      allocations = [...allocate(quota, month, postings)].map((line) => {
        return { ...line, namespace_id: namespace };
      });
      rolls = rollPacks({ quota, packs, spent, carried }, month).map((line) => {
        return { ...line, namespace_id: namespace };
      });
    }
    const own = postings.filter(({ billing_month }) => billing_month === cutOff.month);
    return {
      allocations,
      packs: rolls,
      rollups: own.toSorted(byUsage).map((posting) => rollupLine(namespace, posting)),
      account: own.some(({ bills }) => bills) ? this.#accountOf(namespace, cutOff) : undefined,
    };
  }

  #accountOf(namespace: string, { index, month }: Closing): Json | undefined {
    const end = `${monthAfter(month)}T00:00:00.000Z`;
    const [account] = [namespace, ""].flatMap((name) => {
      const versions = this.#accounts.get(name) ?? [];
      return versions.findLast((one) => one.index < index && one.effective_from < end) ?? [];
    });
    if (account === undefined) return undefined;
    const { account_id, subscription_id } = account;
    return { account_id, namespace_id: namespace, subscription_id };
  }
}

function rollupLine(namespace_id: string, posting: Posting): Json {
  const { adjustment, billable, compute, duration, jobs, tracking, usage_month } = posting;
  const sums = written({ adjustment, billable, compute, duration, jobs });
  return { ...sums, namespace_id, tracking, usage_month };
}

function byUsage(a: Posting, b: Posting): number {
  if (a.usage_month !== b.usage_month) return a.usage_month < b.usage_month ? -1 : 1;
  return a.tracking < b.tracking ? -1 : 1;
}

function push<V>(map: Map<string, V[]>, key: string, value: V): void {
  const values = map.get(key);
  if (values === undefined) map.set(key, [value]);
  else values.push(value);
}

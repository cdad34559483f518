/**
 * Rows of `portal`: what each account pays for, line by line (docs/exports.md, docs/months.md), by an
 * implementation of its own.
 */
import type { Row } from "../../src/core/export/tables.ts";
import type { MonthShare, Terms } from "../month/terms.ts";
import type { Closing } from "../prefix/state.ts";
import type { OpenPiles } from "../tally/piles.ts";
import { dayOfNumber, micro, monthNumber, writeMicro } from "../tally/record.ts";
import { Ranks } from "../tally/texts.ts";
import type { Charges } from "./charges.ts";
import { type Basins, dealer } from "./deal.ts";
import { Fold, type Key, type Sum } from "./fold.ts";
import { trackingOf, usageMonthOf } from "./monthly.ts";

/** The order of rows. */
const PARTS = [
  ...(["account", "subscription", "namespace", "usage_month"] as const),
  ...(["day", "project", "machine", "tracking"] as const),
] as const;
type Part = (typeof PARTS)[number];

/** Before all days stands what the usage month was allocated, and behind them what is of no day. */
const ALLOCATION = 0n;
const NO_DAY = 2n ** 32n - 1n;
/** jobs, duration, gross, compute, adjustment, billable; of an allocation its basins, and zeros. */
const AMOUNTS = 6;

export class Portal {
  readonly #fold: Fold<Part>;
  readonly #terms: Terms;
  readonly #closing: Closing;
  readonly #accounts: Ranks;

  constructor(open: OpenPiles, terms: Terms, closing: Closing) {
    const pileOf = ({ account }: Key<Part>): number => Number(account);
    this.#fold = new Fold(open, { parts: PARTS, amounts: AMOUNTS, pileOf });
    this.#terms = terms;
    this.#closing = closing;
    this.#accounts = new Ranks(["", ...terms.accountNames()]);
  }

  /** What a namespace's month was split into: of all namespaces before `rows`. */
  share(namespace: string, { allocations }: MonthShare): void {
    for (const { absorbed, included, overage, packs, usage_month } of allocations) {
      const pack = packs.reduce((sum, { drawn }) => sum + micro(drawn), 0n);
      const basins = [micro(included), pack, micro(overage), micro(absorbed)];
      const key = {
        ...this.#payer(namespace),
        namespace: BigInt(namespace),
        usage_month: BigInt(monthNumber(usage_month)),
        ...{ day: ALLOCATION, project: 0n, machine: 0n, tracking: 0n },
      };
      this.#fold.add(key, 0n, [...basins, 0n, 0n]);
    }
  }

  *rows(charges: Charges): Generator<Row> {
    const machines = new Ranks(charges.machines.all);
    for (const charge of charges.posted(this.#closing.month)) {
      const { adjustment, billable, compute, day, duration, gross, jobs } = charge;
      const key = {
        ...charge,
        ...this.#payer(String(charge.namespace)),
        day: day === 0n ? NO_DAY : day,
        machine: machines.place(charges.machines.text(charge.machine)),
      };
      this.#fold.add(key, charge.index, [jobs, duration, gross, compute, adjustment, billable]);
    }
    let deal = dealer([0n, 0n, 0n, 0n]);
    for (const sum of this.#fold.sums()) {
      const [included = 0n, pack = 0n, overage = 0n, absorbed = 0n] = sum.amounts;
      if (sum.key.day === ALLOCATION) deal = dealer([included, pack, overage, absorbed]);
      else yield this.#row(sum, machines, deal);
    }
  }

  #row({ amounts, key }: Sum<Part>, machines: Ranks, deal: (billable: bigint) => Basins): Row {
    const [jobs = 0n, duration = 0n, gross = 0n, compute = 0n, adjustment = 0n, billed = 0n] =
      amounts;
    const net = compute + adjustment;
    const billable = billed + adjustment;
    const split = [gross, gross - compute, adjustment, net, billable, net - billable];
    return [
      ...[this.#accounts.text(key.account) || null, this.#accounts.text(key.subscription) || null],
      ...[String(key.namespace), String(key.project), machines.text(key.machine) || null],
      ...[trackingOf(key), usageMonthOf(key)],
      key.day === NO_DAY ? null : dayOfNumber(Number(key.day)),
      ...[String(jobs), String(duration), ...[...split, ...deal(billable)].map(writeMicro)],
    ];
  }

  #payer(namespace: string): Key<"account" | "subscription"> {
    const { account_id = "", subscription_id = "" } =
      this.#terms.account(namespace, this.#closing) ?? {};
    return {
      account: this.#accounts.place(account_id),
      subscription: this.#accounts.place(subscription_id),
    };
  }
}

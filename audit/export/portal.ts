/**
 * Rows of `portal`: what each account pays for, line by line (docs/exports.md, docs/months.md), by an
 * implementation of its own.
 */
import type { Row } from "../../src/core/export/tables.ts";
import type { Terms } from "../month/terms.ts";
import type { Closing } from "../prefix/state.ts";
import type { OpenPiles } from "../tally/piles.ts";
import { dayOfNumber, writeMicro } from "../tally/record.ts";
import { Ranks } from "../tally/texts.ts";
import type { Allocated } from "./allocated.ts";
import type { Charges } from "./charges.ts";
import { dealer } from "./deal.ts";
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

interface Parts {
  open: OpenPiles;
  terms: Terms;
  closing: Closing;
}

export class Portal {
  readonly #fold: Fold<Part>;
  readonly #terms: Terms;
  readonly #closing: Closing;
  readonly #accounts: Ranks;

  constructor({ closing, open, terms }: Parts) {
    const pileOf = ({ account }: Key<Part>): number => Number(account);
    this.#fold = new Fold(open, { parts: PARTS, amounts: AMOUNTS, pileOf });
    this.#terms = terms;
    this.#closing = closing;
    this.#accounts = new Ranks(["", ...terms.accountNames()]);
  }

  /**
   * In their order, once. `allocated` is what the month was split into, of all namespaces.
   *
   * @param apart whether what came late for an earlier month, and what corrects it, are two rows: in this order
   */
  *rows(charges: Charges, allocated: Iterable<Allocated>, apart = false): Generator<Row> {
    const machines = new Ranks(charges.machines.all);
    for (const { basins, namespace, usage_month } of allocated) {
      const none = { day: ALLOCATION, project: 0n, machine: 0n, tracking: 0n };
      const key = { ...this.#payer(String(namespace)), namespace, usage_month, ...none };
      this.#fold.add(key, 0n, [...basins, 0n, 0n]);
    }
    this.#fill(charges, machines);
    let deal = dealer([0n, 0n, 0n, 0n]);
    for (const sum of this.#fold.sums()) {
      const [included = 0n, pack = 0n, overage = 0n, absorbed = 0n] = sum.amounts;
      if (sum.key.day === ALLOCATION) deal = dealer([included, pack, overage, absorbed]);
      else
        for (const part of apart ? this.#apart(sum) : [sum]) yield this.#row(part, machines, deal);
    }
  }

  #fill(charges: Charges, machines: Ranks): void {
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
  }

  #apart(sum: Sum<Part>): Sum<Part>[] {
    const [jobs = 0n, duration = 0n, gross = 0n, compute = 0n, adjustment = 0n, billed = 0n] =
      sum.amounts;
    const isEarlier = usageMonthOf(sum.key) < this.#closing.month;
    if (!isEarlier || jobs === 0n || adjustment === 0n) return [sum];
    return [
      { ...sum, amounts: [jobs, duration, gross, compute, 0n, billed] },
      { ...sum, amounts: [0n, 0n, 0n, 0n, adjustment, 0n] },
    ];
  }

  #row({ amounts, key }: Sum<Part>, machines: Ranks, deal: (billable: bigint) => bigint[]): Row {
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

/** What the log comes to, by billing month and tracking: few rows, whatever its size. */
import type { Charge } from "./usage.ts";

/** Amounts in milliseconds and in 10⁻⁶ compute-milliseconds. */
export interface Month {
  billing_month: string;
  tracking: string;
  jobs: bigint;
  duration: bigint;
  compute: bigint;
  billable: bigint;
  /** What adjustments add to both. */
  adjustment: bigint;
}

export class Months {
  readonly #months = new Map<string, Month>();

  take({ keys, duration, compute, billable }: Charge): void {
    const month = this.#month(keys.billing_month, keys.tracking);
    month.jobs += 1n;
    month.duration += duration;
    month.compute += compute;
    if (billable) month.billable += compute;
  }

  adjust({ amount, billing_month }: { amount: bigint; billing_month: string }): void {
    this.#month(billing_month, "hosted").adjustment += amount;
  }

  /** In the order of months. */
  all(): Month[] {
    return Array.from(this.#months.entries())
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, month]) => month);
  }

  #month(billing_month: string, tracking: string): Month {
    const key = `${billing_month} ${tracking}`;
    const known = this.#months.get(key);
    if (known !== undefined) return known;
    const zero = { jobs: 0n, duration: 0n, compute: 0n, billable: 0n, adjustment: 0n };
    const month = { billing_month, tracking, ...zero };
    this.#months.set(key, month);
    return month;
  }
}

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
}

export class Months {
  readonly #months = new Map<string, Month>();

  take({ keys, duration, compute, billable }: Charge): void {
    const { billing_month, tracking } = keys;
    const key = `${billing_month} ${tracking}`;
    const zero = { jobs: 0n, duration: 0n, compute: 0n, billable: 0n };
    const month = this.#months.get(key) ?? { billing_month, tracking, ...zero };
    this.#months.set(key, month);
    month.jobs += 1n;
    month.duration += duration;
    month.compute += compute;
    if (billable) month.billable += compute;
  }

  /** In the order of months. */
  all(): Month[] {
    return Array.from(this.#months.entries())
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, month]) => month);
  }
}

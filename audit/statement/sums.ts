/** The sums of a statement: by machine type, by usage month, and over allocations and packs. */
import type { Body } from "../../src/core/entry.ts";
import { micro, writeMicro } from "../tally/record.ts";
import type { Charge } from "../tally/usage.ts";

export interface Amounts {
  adjustment: bigint;
  billable: bigint;
  compute: bigint;
  duration: bigint;
  jobs: bigint;
}

const ZERO: Amounts = { adjustment: 0n, billable: 0n, compute: 0n, duration: 0n, jobs: 0n };

/** Sums by a key, told in the order of the keys' UTF-16 code units. */
export class Sums {
  readonly #sums = new Map<string, Amounts>();

  add(key: string, more: Partial<Amounts>): void {
    const sum = this.#sums.get(key) ?? { ...ZERO };
    for (const name of Object.keys(more) as (keyof Amounts)[]) sum[name] += more[name] ?? 0n;
    this.#sums.set(key, sum);
  }

  all(): [string, Amounts][] {
    return [...this.#sums].sort(([a], [b]) => (a < b ? -1 : 1));
  }
}

export function written({ adjustment, billable, compute, duration, jobs }: Amounts) {
  return {
    adjustment_compute_ms: writeMicro(adjustment),
    billable_compute_ms: writeMicro(billable),
    compute_ms: writeMicro(compute),
    duration_ms: String(duration),
    jobs: String(jobs),
  };
}

export function amountsOf({ billable, compute, duration }: Charge): Amounts {
  return { adjustment: 0n, billable: billable ? compute : 0n, compute, duration, jobs: 1n };
}

/** By reason: how many lines, and their sum. */
export class Corrections {
  readonly #month: string;
  readonly #sums = new Map<string, { amount: bigint; lines: bigint }>();

  constructor(month: string) {
    this.#month = month;
  }

  take({ billing_month, lines, reason }: Body<"adjustment">): void {
    if (billing_month !== this.#month) return;
    const { amount, lines: count } = this.#sums.get(reason) ?? { amount: 0n, lines: 0n };
    const more = lines.reduce((sum, line) => sum + micro(line.amount), 0n);
    this.#sums.set(reason, { amount: amount + more, lines: count + BigInt(lines.length) });
  }

  all() {
    return [...this.#sums]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([reason, { amount, lines }]) => {
        return { amount: writeMicro(amount), lines: String(lines), reason };
      });
  }
}

/** Sums of the named members of lines, as they are written. */
export class LineSums<Name extends string> {
  readonly #sums: Map<Name, bigint>;

  constructor(names: readonly Name[]) {
    this.#sums = new Map(names.map((name) => [name, 0n]));
  }

  add(line: { readonly [name: string]: unknown }): void {
    for (const [name, sum] of this.#sums) this.#sums.set(name, sum + micro(String(line[name])));
  }

  all(): Record<Name, string> {
    const written = Array.from(this.#sums, ([name, sum]) => [name, writeMicro(sum)]);
    return Object.fromEntries(written) as Record<Name, string>;
  }
}

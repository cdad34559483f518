/** What the lines of a run come to, for those who decide about it. */
import { formatSignedComputeMs } from "../../core/charge.ts";
import type { CreditLine } from "../../core/credit-run.ts";

/** Of each list the largest; the whole list is the lines. */
const SHOWN_MAX = 20;

export type CreditSummary = {
  /** How many there are. */
  namespaces: string;
  top: { namespace_id: string; amount: string }[];
  /** Empty for packs, and for what takes a run back. */
  by_machine_type: { machine_type: string; lines: string; amount: string }[];
};

export class Summing {
  readonly #namespaces = new Map<string, bigint>();
  readonly #machines = new Map<string, { lines: bigint; amount: bigint }>();
  total = 0n;

  add({ amount, namespace_id }: CreditLine, machineType: string | undefined): void {
    this.total += amount;
    this.#namespaces.set(namespace_id, (this.#namespaces.get(namespace_id) ?? 0n) + amount);
    if (machineType === undefined) return;
    const { lines, amount: sum } = this.#machines.get(machineType) ?? { lines: 0n, amount: 0n };
    this.#machines.set(machineType, { lines: lines + 1n, amount: sum + amount });
  }

  summary(): CreditSummary {
    const top = largest([...this.#namespaces], (amount) => amount);
    const machines = largest([...this.#machines], ({ amount }) => amount);
    return {
      namespaces: String(this.#namespaces.size),
      top: top.map(([namespace_id, amount]) => {
        return { namespace_id, amount: formatSignedComputeMs(amount) };
      }),
      by_machine_type: machines.map(([machine_type, { lines, amount }]) => {
        return { machine_type, lines: String(lines), amount: formatSignedComputeMs(amount) };
      }),
    };
  }
}

function largest<V>(all: [string, V][], amountOf: (value: V) => bigint): [string, V][] {
  const size = ([, value]: [string, V]): bigint => {
    const amount = amountOf(value);
    return amount < 0n ? -amount : amount;
  };
  // Of equal ones those that came first: the order of the lines is one order for everybody.
  return all
    .sort((a, b) => Number(size(b) > size(a)) - Number(size(b) < size(a)))
    .slice(0, SHOWN_MAX);
}

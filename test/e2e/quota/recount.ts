/** What the log says of a namespace at any of its sizes: counted naively, from the bytes of its entries. */
import type { Sql } from "../../../src/store/connect.ts";
import { reportIn } from "../../flow/door.ts";

/** Amounts are in 10⁻⁶ compute-milliseconds. */
const MINUTE = 60_000n * 1_000_000n;

export interface Counted {
  /** Limit and packs less what is used, with no job live. */
  available: bigint;
  /** How far a running job may go beyond; undefined: as far as it wants. */
  slack: bigint | undefined;
  unlimited: boolean;
}

interface Limit {
  minutes: bigint;
  slack: bigint | undefined;
}

type Change = { index: bigint } & (
  | { kind: "limit"; limit: Limit }
  | { kind: "pack"; month: string; amount: bigint }
  | { kind: "used"; month: string; amount: bigint }
);

interface Raw {
  kind: string;
  body: Record<string, string>;
}

/** Of a log without closings, and of packs that neither expire nor change. */
export class Recount {
  readonly #changes = new Map<string, Change[]>();
  readonly #ended = new Map<string, bigint>();
  #size = 0n;

  async readOn(sql: Sql, log: string): Promise<void> {
    const rows = await sql<{ index: bigint; bytes: Uint8Array }[]>`
      select index, bytes from entries where log = ${log} and index >= ${this.#size} order by index`;
    for (const { index, bytes } of rows) {
      if (index !== this.#size) throw new Error("recount: a gap");
      this.#take(index, JSON.parse(Buffer.from(bytes).toString("utf8")));
      this.#size += 1n;
    }
  }

  get size(): bigint {
    return this.#size;
  }

  /** Whether the usage of the job is among the first entries of the log. */
  hasEnded(job: string, asOf: bigint): boolean {
    const index = this.#ended.get(job);
    return index !== undefined && index < asOf;
  }

  at(namespace: string, asOf: bigint, month: string): Counted {
    let limit: Limit = { minutes: 0n, slack: 1_000n * MINUTE };
    const packs: { month: string; amount: bigint }[] = [];
    const used = new Map<string, bigint>();
    for (const change of this.#changes.get(namespace) ?? []) {
      if (change.index >= asOf) break;
      if (change.kind === "limit") limit = change.limit;
      else if (change.kind === "pack") packs.push(change);
      else used.set(change.month, (used.get(change.month) ?? 0n) + change.amount);
    }
    const monthly = limit.minutes * MINUTE;
    const bought = (until: string): bigint =>
      packs.reduce((sum, pack) => (pack.month <= until ? sum + pack.amount : sum), 0n);
    let drawn = 0n;
    for (const [earlier, amount] of [...used].sort()) {
      if (earlier < month) drawn = least(bought(earlier), drawn + most(0n, amount - monthly));
    }
    return {
      available: monthly + bought(month) - drawn - (used.get(month) ?? 0n),
      slack: limit.slack,
      unlimited: monthly === 0n && bought(month) === 0n,
    };
  }

  #take(index: bigint, { body, kind }: Raw): void {
    if (kind === "quota") {
      const { beyond, cap, grace_minutes, monthly_minutes = "0", namespace_id } = body;
      const minutes = beyond === "stop" ? grace_minutes : cap;
      const slack = minutes ? BigInt(minutes) * MINUTE : undefined;
      const limit = { minutes: BigInt(monthly_minutes), slack };
      this.#push(namespace_id, { index, kind: "limit", limit });
    } else if (kind === "pack") {
      const { minutes = "0", namespace_id, purchased_in = "" } = body;
      const amount = BigInt(minutes) * MINUTE;
      this.#push(namespace_id, { index, kind: "pack", month: purchased_in, amount });
    } else if (kind === "usage") {
      const { billing_month: month = "", compute_ms = "", jws = "", usage_month } = body;
      const { job } = reportIn(jws);
      this.#ended.set(job.id, index);
      if (month !== usage_month) return;
      const amount = BigInt(compute_ms.replace(".", ""));
      this.#push(job.root_namespace_id, { index, kind: "used", month, amount });
    }
  }

  #push(namespace: string | undefined, change: Change): void {
    const changes = this.#changes.get(namespace ?? "") ?? [];
    this.#changes.set(namespace ?? "", changes);
    changes.push(change);
  }
}

const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);
const most = (a: bigint, b: bigint): bigint => (a > b ? a : b);

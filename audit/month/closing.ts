/** Closed months, held to what the entries give: allocation, packs, accounts, totals (docs/months.md). */
import { sha256 } from "@noble/hashes/sha2.js";
import type { Body } from "../../src/core/entry.ts";
import { canonical, type Json } from "../../src/core/json.ts";
import { encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import type { Findings } from "../finding.ts";
import type { Posting } from "../money/ledger.ts";
import type { ClosedMonth } from "../money/state.ts";
import type { State } from "../prefix/state.ts";
import { monthAfter } from "../rating.ts";
import { writeMicro } from "../tally/record.ts";
import { allocate } from "./allocation.ts";
import { Quota, type Version } from "./quota.ts";
import { rollPacks } from "./roll.ts";

const DIGESTS = ["rollups", "allocations", "packs", "accounts"] as const;
type Digest = (typeof DIGESTS)[number];

type Totals = Record<keyof Body<"month_closed">["totals"], bigint>;

/** One closed month, while namespaces go by. */
class Sums {
  readonly month: ClosedMonth;
  readonly #digests = new Map(DIGESTS.map((name) => [name, sha256.create()]));
  readonly #lines = new Map<Digest, bigint>();
  readonly #totals: Totals = {
    adjustment_compute_ms: 0n,
    billable_compute_ms: 0n,
    compute_ms: 0n,
    duration_ms: 0n,
    jobs: 0n,
  };

  constructor(month: ClosedMonth) {
    this.month = month;
  }

  take(digest: Digest, line: Json): void {
    this.#digests.get(digest)?.update(encodeUtf8(`${canonical(line)}\n`));
    this.#lines.set(digest, (this.#lines.get(digest) ?? 0n) + 1n);
  }

  sum({ adjustment, billable, compute, duration, jobs }: Posting): void {
    this.#totals.adjustment_compute_ms += adjustment;
    this.#totals.billable_compute_ms += billable;
    this.#totals.compute_ms += compute;
    this.#totals.duration_ms += duration;
    this.#totals.jobs += jobs;
  }

  check(findings: Findings): void {
    const { body, index } = this.month;
    for (const [name, digest] of this.#digests) {
      const given = encodeBase64(digest.digest());
      const detail = `${name}_sha256 ${body[`${name}_sha256`]}, not ${given}`;
      if (body[`${name}_sha256`] !== given) findings.add("month-figures", { index }, detail);
    }
    const lines = String(this.#lines.get("allocations") ?? 0n);
    const wrong = [["allocations", body.allocations, lines] as const, ...this.#said()].filter(
      ([, said, given]) => said !== given,
    );
    for (const [name, said, given] of wrong) {
      findings.add("month-figures", { index }, `${name} ${said}, not ${given}`);
    }
  }

  #said(): [string, string, string][] {
    const { totals } = this.month.body;
    return (Object.keys(totals) as (keyof Totals)[]).map((name) => {
      const given = this.#totals[name];
      const whole = name === "jobs" || name === "duration_ms";
      return [name, totals[name], whole ? String(given) : writeMicro(given)];
    });
  }
}

export class ClosedMonths {
  readonly #state: State;
  readonly #findings: Findings;
  readonly #months: readonly Sums[];
  readonly #packs = new Map<string, (readonly Version[])[]>();

  constructor(state: State, findings: Findings) {
    this.#state = state;
    this.#findings = findings;
    this.#months = state.money.closed.map((month) => new Sums(month));
    for (const versions of state.packs.values()) {
      const namespace = versions[0]?.namespace_id ?? "";
      this.#packs.set(namespace, [...(this.#packs.get(namespace) ?? []), versions]);
    }
  }

  /** In the order of the namespaces' numbers. */
  take(namespace: string, postings: readonly Posting[]): void {
    this.#missAccounts(namespace, postings);
    if (this.#months.length === 0) return;
    const { closings, limits } = this.#state;
    const packs = this.#packs.get(namespace) ?? [];
    const quota = new Quota({ limits: limits.get(namespace) ?? [], packs }, closings);
    const carried = new Map<readonly Version[], bigint>();
    for (const sums of this.#months) {
      const { closing } = sums.month;
      const own = postings.filter(({ billing_month }) => billing_month === closing.month);
      for (const posting of own.sort(byUsage)) {
        sums.take("rollups", rollup(namespace, posting));
        sums.sum(posting);
      }
      // Drawn before the month's own terms are asked for.
      const spent = new Map(packs.map((pack) => [pack, quota.spent(pack)]));
      for (const line of allocate(quota, closing.month, postings)) {
        sums.take("allocations", { ...line, namespace_id: namespace });
      }
      for (const line of rollPacks({ quota, packs, spent, carried }, closing.month)) {
        sums.take("packs", { ...line, namespace_id: namespace });
      }
      const account = own.some(({ bills }) => bills) && this.#accountOf(namespace, closing);
      if (account) sums.take("accounts", account);
    }
  }

  end(): void {
    for (const sums of this.#months) sums.check(this.#findings);
  }

  #missAccounts(namespace: string, postings: readonly Posting[]): void {
    const billed = new Set(
      postings.filter(({ bills }) => bills).map(({ billing_month }) => billing_month),
    );
    for (const closing of this.#state.closings) {
      if (!billed.has(closing.month) || this.#accountOf(namespace, closing)) continue;
      const detail = `namespace ${namespace} has no account`;
      this.#findings.add("month-not-ready", { index: closing.index }, detail);
    }
  }

  #accountOf(
    namespace: string,
    { index, month }: { index: bigint; month: string },
  ): Json | undefined {
    const { accounts } = this.#state.money;
    const over = `${monthAfter(month)}T00:00:00.000Z`;
    const account = [namespace, ""]
      .map((name) =>
        accounts.get(name)?.findLast((one) => one.index < index && one.effective_from < over),
      )
      .find((one) => one !== undefined);
    if (account === undefined) return undefined;
    const { account_id, subscription_id } = account;
    return { account_id, namespace_id: namespace, subscription_id };
  }
}

function rollup(namespace_id: string, posting: Posting): Json {
  return {
    adjustment_compute_ms: writeMicro(posting.adjustment),
    billable_compute_ms: writeMicro(posting.billable),
    compute_ms: writeMicro(posting.compute),
    duration_ms: String(posting.duration),
    jobs: String(posting.jobs),
    namespace_id,
    tracking: posting.tracking,
    usage_month: posting.usage_month,
  };
}

function byUsage(a: Posting, b: Posting): number {
  if (a.usage_month !== b.usage_month) return a.usage_month < b.usage_month ? -1 : 1;
  return a.tracking < b.tracking ? -1 : 1;
}

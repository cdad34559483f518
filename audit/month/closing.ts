/** Closed months, held to what the entries give: allocation, packs, accounts, totals (docs/months.md). */
import { sha256 } from "@noble/hashes/sha2.js";
import type { Body } from "../../src/core/entry.ts";
import { canonical, type Json } from "../../src/core/json.ts";
import { encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import type { Findings } from "../finding.ts";
import type { Posting } from "../money/ledger.ts";
import type { ClosedMonth } from "../money/state.ts";
import type { Closing, State } from "../prefix/state.ts";
import { writeMicro } from "../tally/record.ts";
import type { MonthShare, Terms } from "./terms.ts";

const DIGESTS = ["rollups", "allocations", "packs", "accounts"] as const;
type Digest = (typeof DIGESTS)[number];

type Totals = Record<keyof Body<"month_closed">["totals"], bigint>;

/** One closed month, while namespaces go by. */
class Sums {
  readonly #month: ClosedMonth;
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
    this.#month = month;
  }

  share(
    namespace_id: string,
    { account, allocations, packs, postings }: Omit<MonthShare, "closing">,
  ): void {
    for (const posting of postings) {
      this.#take("rollups", rollup(namespace_id, posting));
      this.#sum(posting);
    }
    for (const line of allocations) this.#take("allocations", { ...line, namespace_id });
    for (const line of packs) this.#take("packs", { ...line, namespace_id });
    const payer = payerOf(namespace_id, { account, postings });
    if (payer !== undefined) this.#take("accounts", payer);
  }

  check(findings: Findings): void {
    const { body, index } = this.#month;
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

  #take(digest: Digest, line: Json): void {
    this.#digests.get(digest)?.update(encodeUtf8(`${canonical(line)}\n`));
    this.#lines.set(digest, (this.#lines.get(digest) ?? 0n) + 1n);
  }

  #sum({ adjustment, billable, compute, duration, jobs }: Posting): void {
    this.#totals.adjustment_compute_ms += adjustment;
    this.#totals.billable_compute_ms += billable;
    this.#totals.compute_ms += compute;
    this.#totals.duration_ms += duration;
    this.#totals.jobs += jobs;
  }

  #said(): [string, string, string][] {
    const { totals } = this.#month.body;
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
  readonly #terms: Terms;
  readonly #months: readonly Sums[];
  readonly #closings: readonly Closing[];

  constructor(state: State, terms: Terms, findings: Findings) {
    this.#state = state;
    this.#findings = findings;
    this.#terms = terms;
    this.#months = state.money.closed.map((month) => new Sums(month));
    this.#closings = state.money.closed.map(({ closing }) => closing);
  }

  /** In the order of the namespaces' numbers. `tell` is told what each closed month comes to. */
  take(
    namespace: string,
    postings: readonly Posting[],
    tell: (share: MonthShare, month: number) => void,
  ): void {
    this.#missAccounts(namespace, postings);
    if (this.#months.length === 0) return;
    let at = 0;
    for (const share of this.#terms.months(namespace, postings, this.#closings)) {
      this.#months[at]?.share(namespace, share);
      tell(share, at);
      at += 1;
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
      if (!billed.has(closing.month) || this.#terms.account(namespace, closing)) continue;
      const detail = `namespace ${namespace} has no account`;
      this.#findings.add("month-not-ready", { index: closing.index }, detail);
    }
  }
}

/** Of a namespace that has anything to pay for; undefined where nobody is told to pay for it. */
export function payerOf(
  namespace_id: string,
  { account, postings }: Pick<MonthShare, "account" | "postings">,
): Json | undefined {
  if (account === undefined || !postings.some(({ bills }) => bills)) return undefined;
  const { account_id, subscription_id } = account;
  return { account_id, namespace_id, subscription_id };
}

export function rollup(namespace_id: string, posting: Posting): Json {
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

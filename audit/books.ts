/** All that is kept while the entries go by, and closed when they have. */
import type { Verify } from "../src/core/ed25519.ts";
import type { EntryOf } from "../src/core/entry.ts";
import type { Sha256 } from "../src/core/hash.ts";
import type { Judged } from "./archive/walk.ts";
import { type ReliedKey, relied, startDecided } from "./control/decided.ts";
import { DecisionList, type Decisions, type Period } from "./control/decisions.ts";
import type { IssuerKeys } from "./control/issuer-keys.ts";
import { TokenSignatures } from "./control/signature.ts";
import { startEvidence } from "./evidence/state.ts";
import { Charges } from "./export/charges.ts";
import { ClosingSets } from "./export/closing-set.ts";
import { EventCounts } from "./feed/counts.ts";
import { missFollowers } from "./feed/rules.ts";
import { startFeed } from "./feed/state.ts";
import { Judgement } from "./judgement.ts";
import { type Adjusted, AdjustedUsage, adjustedMonth } from "./money/adjusted.ts";
import { missLines } from "./money/credit-run.ts";
import { Ledger } from "./money/ledger.ts";
import { AdjustmentLines } from "./money/lines.ts";
import { type Figure, startMoney } from "./money/state.ts";
import { missAnchors } from "./month/anchored.ts";
import { ClosedMonths } from "./month/closing.ts";
import { Terms } from "./month/terms.ts";
import { admit } from "./prefix/admission.ts";
import type { Outcome } from "./prefix/rule.ts";
import { type State, startState } from "./prefix/state.ts";
import { Accounts } from "./tally/accounts.ts";
import { Counters, type KeyAccount } from "./tally/counters.ts";
import { Jobs } from "./tally/jobs.ts";
import { type Month, Months } from "./tally/months.ts";
import { Once } from "./tally/once.ts";
import type { OpenPiles } from "./tally/piles.ts";
import { Standing } from "./tally/standing.ts";
import { type Charge, UsageCheck, type UsageFile } from "./tally/usage.ts";

interface BooksOptions {
  /** Of the checkpoints: what the log's keys are named by. */
  origin: string;
  hash: Sha256;
  verify: Verify;
  openPiles: OpenPiles;
  usage: readonly UsageFile[];
  issuerKeys?: IssuerKeys | undefined;
  decided?: Period | undefined;
}

export interface Closed {
  kinds: Map<string, bigint>;
  signatures: bigint;
  keys: KeyAccount[];
  months: Month[];
  issuerKeys: ReliedKey[];
  decisions: Decisions;
}

export class Books {
  readonly #options: BooksOptions;
  readonly #outcome: Outcome;
  readonly #accounts: Accounts;
  readonly #counters: Counters;
  readonly #jobs: Jobs;
  readonly #standing: Standing;
  readonly #adjusted: AdjustedUsage;
  readonly #lines: AdjustmentLines;
  readonly #ledger: Ledger;
  readonly #charges: Charges;
  readonly #events: EventCounts;
  readonly #breaks: Once;
  readonly #tokens: TokenSignatures;
  readonly #decisions: DecisionList;
  readonly #months = new Months();
  readonly #figures: readonly UsageCheck[];
  readonly #kinds = new Map<string, bigint>();
  /** Undefined before entry 0: without it nothing can be judged. */
  #judges: { state: State; judgement: Judgement } | undefined;

  constructor(options: BooksOptions, outcome: Outcome) {
    const { hash, openPiles, usage } = options;
    this.#options = options;
    this.#outcome = outcome;
    this.#accounts = new Accounts(openPiles);
    this.#counters = new Counters(openPiles);
    this.#jobs = new Jobs(openPiles);
    this.#standing = new Standing(openPiles);
    this.#adjusted = new AdjustedUsage(openPiles);
    this.#lines = new AdjustmentLines(openPiles, hash);
    this.#ledger = new Ledger(openPiles);
    this.#charges = new Charges(openPiles);
    this.#events = new EventCounts(openPiles);
    this.#breaks = new Once(openPiles);
    this.#tokens = new TokenSignatures(outcome);
    this.#decisions = new DecisionList(options.decided);
    this.#figures = usage.map((file) => new UsageCheck(file));
  }

  take({ entry, leaf, said }: Judged): void {
    const { index, kind } = entry;
    this.#kinds.set(kind, (this.#kinds.get(kind) ?? 0n) + 1n);
    if (kind === "unknown-kind") {
      this.#outcome.open.add("unknown-kind", { index }, "a later version's entry");
      return;
    }
    if (kind === "log") this.#start(entry);
    if (this.#judges === undefined) return;
    const { judgement, state } = this.#judges;
    admit(state, entry, leaf, this.#outcome);
    judgement.judge(entry, said);
  }

  /** Judges what takes its time of all that was taken: few tokens wait, however long the log. */
  async settle(): Promise<void> {
    await this.#tokens.settle();
  }

  /** What only all entries together can say. `size` of them were covered, and `held` by known witnesses. */
  close(size: bigint, held: bigint): Closed {
    const { findings, open } = this.#outcome;
    this.#accounts.check(findings, this.#standing);
    this.#jobs.check(findings);
    this.#standing.check(findings);
    this.#adjusted.check(findings, (adjusted) => this.#figure(adjusted));
    this.#lines.check(findings);
    this.#breaks.check(findings, "break-twice");
    this.#events.check(this.#charges, findings);
    const keys = this.#counters.check(findings);
    for (const check of this.#figures) check.check(size, findings, open);
    const { judgement, state } = this.#judges ?? {};
    if (state !== undefined) {
      missFollowers(state, findings);
      this.#closeMonths(state, held);
    }
    return {
      kinds: this.#kinds,
      signatures: judgement?.signatures ?? 0n,
      keys,
      months: this.#months.all(),
      issuerKeys: state === undefined ? [] : relied(state.decided),
      decisions: this.#decisions.all(),
    };
  }

  #start(entry: EntryOf<"log">): void {
    const { hash, issuerKeys, origin, verify } = this.#options;
    const decided = startDecided({
      known: issuerKeys,
      token: (token) => this.#tokens.note(token),
      decision: (decision) => this.#decisions.take(decision),
    });
    const money = startMoney({
      ledger: this.#ledger,
      lines: this.#lines,
      figure: (figure, line) => this.#adjust(figure, line),
    });
    const evidence = startEvidence(this.#breaks, this.#standing);
    const feed = startFeed(this.#events);
    const tools = { hash, verify };
    const state = startState(entry, { decided, evidence, feed, money, origin, tools });
    const judgement = new Judgement(state, this.#tallies(), this.#outcome.findings);
    this.#judges = { state, judgement };
  }

  #adjust(figure: Figure, line: number): void {
    this.#events.event(figure.billing_month, figure.index);
    this.#months.adjust(figure);
    this.#ledger.adjust(figure, line);
    if (figure.entry === "") this.#figure(adjustedMonth(figure));
    else this.#adjusted.adjust(figure, line);
  }

  /** What is charged to nobody, or for nothing, is no event of the feed. */
  #tell({ billable, compute, index, keys }: Charge): void {
    if (billable && compute > 0n) this.#events.event(keys.billing_month, index);
  }

  #figure(adjusted: Adjusted): void {
    this.#charges.adjust(adjusted);
    for (const check of this.#figures) check.adjust(adjusted);
  }

  #closeMonths(state: State, held: bigint): void {
    const { findings, open } = this.#outcome;
    missLines(state.money.runs, open);
    missAnchors(state.money.closed, held, open);
    const { accounts, closed } = state.money;
    const terms = new Terms({ accounts, limits: state.limits, packs: state.packs });
    const months = new ClosedMonths(state, terms, findings);
    const files = new ClosingSets(this.#options.openPiles, terms, closed);
    for (const [namespace, postings] of this.#ledger.namespaces(findings)) {
      months.take(namespace, postings, (share, place) => files.share(namespace, share, place));
    }
    months.end();
    files.check(this.#charges, accounts, findings);
  }

  #tallies() {
    return {
      accounts: this.#accounts,
      counters: this.#counters,
      jobs: this.#jobs,
      standing: this.#standing,
      charge: (charge: Charge): void => {
        this.#months.take(charge);
        this.#adjusted.charge(charge);
        this.#ledger.charge(charge);
        this.#charges.charge(charge);
        this.#tell(charge);
        for (const check of this.#figures) check.take(charge);
      },
    };
  }
}

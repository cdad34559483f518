/** All that is kept while the entries go by, and closed when they have. */
import type { Verify } from "../src/core/ed25519.ts";
import type { ReadEntry, UnknownEntry } from "./archive/block.ts";
import type { Findings, OpenCode } from "./finding.ts";
import { Judgement } from "./judgement.ts";
import { Admission } from "./prefix/admission.ts";
import { startState } from "./prefix/state.ts";
import type { Reading } from "./prefix/statement.ts";
import { Accounts } from "./tally/accounts.ts";
import { Counters, type KeyAccount } from "./tally/counters.ts";
import { Jobs } from "./tally/jobs.ts";
import { type Month, Months } from "./tally/months.ts";
import type { OpenPiles } from "./tally/piles.ts";
import { Standing } from "./tally/standing.ts";
import { type Charge, UsageCheck, type UsageFile } from "./tally/usage.ts";

interface BooksOptions {
  /** Of the checkpoints: what the log's keys are named by. */
  origin: string;
  verify: Verify;
  openPiles: OpenPiles;
  usage: readonly UsageFile[];
}

interface Outcome {
  findings: Findings;
  open: Findings<OpenCode>;
}

export class Books {
  readonly #options: BooksOptions;
  readonly #outcome: Outcome;
  readonly #accounts: Accounts;
  readonly #counters: Counters;
  readonly #jobs: Jobs;
  readonly #standing: Standing;
  readonly #months = new Months();
  readonly #figures: readonly UsageCheck[];
  readonly #kinds = new Map<string, bigint>();
  /** Undefined before entry 0: without it nothing can be judged. */
  #judges: { admission: Admission; judgement: Judgement } | undefined;

  constructor(options: BooksOptions, outcome: Outcome) {
    const { openPiles, usage } = options;
    this.#options = options;
    this.#outcome = outcome;
    this.#accounts = new Accounts(openPiles);
    this.#counters = new Counters(openPiles);
    this.#jobs = new Jobs(openPiles);
    this.#standing = new Standing(openPiles);
    this.#figures = usage.map((file) => new UsageCheck(file));
  }

  /** `said` is what the entry's JWS says, where its kind has an agent's. */
  take(entry: ReadEntry | UnknownEntry, said: Reading | undefined): void {
    const { index, kind } = entry;
    this.#kinds.set(kind, (this.#kinds.get(kind) ?? 0n) + 1n);
    if (kind === "unknown-kind") {
      this.#outcome.open.add("unknown-kind", { index }, "a later version's entry");
      return;
    }
    if (kind === "log") {
      const state = startState(entry, this.#options.origin);
      this.#judges = {
        admission: new Admission(state, this.#outcome, this.#options.verify),
        judgement: new Judgement(state, this.#tallies(), this.#outcome),
      };
    }
    this.#judges?.admission.admit(entry);
    this.#judges?.judgement.judge(entry, said);
  }

  /** What only all entries together can say. `size` of them were covered. */
  close(size: bigint): {
    kinds: Map<string, bigint>;
    signatures: bigint;
    keys: KeyAccount[];
    months: Month[];
  } {
    const { findings, open } = this.#outcome;
    this.#accounts.check(findings, this.#standing);
    this.#jobs.check(findings);
    this.#standing.check(findings);
    const keys = this.#counters.check(findings);
    for (const check of this.#figures) check.check(size, findings, open);
    const signatures = this.#judges?.judgement.signatures ?? 0n;
    return { kinds: this.#kinds, signatures, keys, months: this.#months.all() };
  }

  #tallies() {
    return {
      accounts: this.#accounts,
      counters: this.#counters,
      jobs: this.#jobs,
      standing: this.#standing,
      charge: (charge: Charge): void => {
        this.#months.take(charge);
        for (const check of this.#figures) check.take(charge);
      },
    };
  }
}

/** Every signed report is accounted for exactly once: by an entry of its own, or by a line. */
import type { Findings } from "../finding.ts";
import { type OpenPiles, pileOfHash, SortedPiles } from "./piles.ts";
import type { Standing } from "./standing.ts";

/** How an entry accounts for a digest. `released` and `reused` come beside another account. */
export const ACCOUNT = { usage: 0, conflict: 1, hold: 2, line: 3, released: 4, reused: 5 } as const;
export type Account = (typeof ACCOUNT)[keyof typeof ACCOUNT];

/** digest 32 · index 8 · account 1 · whether an entry is named 1 · which 8 */
const WIDTH = 50;
const DIGEST = 32;
const AS = 40;
const NAMES = 41;
const NAMED = 42;

export class Accounts {
  readonly #piles: SortedPiles;
  readonly #record = new Uint8Array(WIDTH);
  readonly #view = new DataView(this.#record.buffer);

  constructor(open: OpenPiles) {
    this.#piles = new SortedPiles(open, { width: WIDTH, keyWidth: DIGEST });
  }

  /** `named`: the entry that stands, by a line; an entry of the report's own stands itself. */
  note(digest: Uint8Array, index: bigint, account: Account, named: bigint | undefined): void {
    this.#record.set(digest);
    this.#view.setBigUint64(DIGEST, index);
    this.#record[AS] = account;
    this.#record[NAMES] = named === undefined ? 0 : 1;
    this.#view.setBigUint64(NAMED, named ?? 0n);
    this.#piles.add(pileOfHash(digest), this.#record);
  }

  /** Entries that a line must name as usage are named to `standing`. */
  check(findings: Findings, standing: Standing): void {
    let report = new OneReport();
    for (const { record, first, last } of this.#piles.records()) {
      if (first && last && record[AS] !== ACCOUNT.reused) continue; // nearly all of them
      if (first) report = new OneReport();
      report.take(read(record), findings);
      if (last) report.check(findings, standing);
    }
  }
}

interface Said {
  index: bigint;
  account: number;
  named: bigint | undefined;
}

/** What is said of one digest, in the order of the log. */
class OneReport {
  #first: Said | undefined;
  #own: Said | undefined;
  #reused: Said | undefined;
  readonly #seen = new Set<number>();

  take(said: Said, findings: Findings): void {
    const { account, index } = said;
    this.#first ??= said;
    const kind = account < ACCOUNT.released ? ACCOUNT.usage : account;
    if (this.#seen.has(kind)) {
      const before = this.#first.index;
      const again = before === index ? "the same entry" : `entry ${before}`;
      findings.add("digest-twice", { index }, `${again} accounts for the same report`);
    }
    this.#seen.add(kind);
    if (account === ACCOUNT.reused) this.#reused ??= said;
    else this.#own ??= said;
  }

  /**
   * That its counter was used before is noted besides, and names what the report's own account names.
   * Only a duplicate's note is the account as well, and then the job's usage stands.
   */
  check(findings: Findings, standing: Standing): void {
    if (this.#reused === undefined) return;
    const { index, named } = this.#reused;
    if (this.#own !== undefined) {
      if (named === this.#own.named) return;
      const detail = `it names ${named ?? "none"}, entry ${this.#own.index} accounts for the report`;
      findings.add("line-index", { index }, detail);
    } else if (named === undefined) {
      findings.add(
        "line-index",
        { index },
        "a counter was reused by a report that nothing answers",
      );
    } else {
      standing.name(named, index);
    }
  }
}

function read(record: Uint8Array): Said {
  const view = new DataView(record.buffer, record.byteOffset);
  return {
    index: view.getBigUint64(DIGEST),
    account: record[AS] ?? 0,
    named: record[NAMES] === 0 ? undefined : view.getBigUint64(NAMED),
  };
}

/** Which counters of each key the log accounts for, against what the key's agent attested. */
import type { Attestation } from "../../src/core/report.ts";
import { equal } from "../../src/core/text.ts";
import type { Findings } from "../finding.ts";
import type { Key } from "../prefix/state.ts";
import { type OpenPiles, pileOfNumber, SortedPiles } from "./piles.ts";

/** Information, never a finding: a gap may be a report that is still on its way. */
export interface KeyAccount {
  kid: string;
  /** Counters that the log accounts for. */
  seen: bigint;
  /** The highest counter that was attested; absent while nothing was. */
  attested?: bigint;
  /** Counters up to there that the log lacks. */
  missing: bigint;
  /** Lines that the agent could not read, and texts that it would not sign, by that attestation. */
  malformed: bigint;
  rejected: bigint;
}

/** index of the key's entry 8 · counter 8 · digest 32 · noted as reused 1 · index 8 */
const WIDTH = 57;
const KEY = 16;
const DIGEST = 16;
const NOTED = 48;
const INDEX = 49;
/** Runs of neighbouring counters of one key share a pile, and so the many of one key do not. */
const RUN_BITS = 12n;

export class Counters {
  readonly #piles: SortedPiles;
  readonly #keys = new Map<bigint, KeyAccount>();
  readonly #record = new Uint8Array(WIDTH);
  readonly #view = new DataView(this.#record.buffer);

  constructor(open: OpenPiles) {
    this.#piles = new SortedPiles(open, { width: WIDTH, keyWidth: KEY });
  }

  note(key: Key, counter: bigint, digest: Uint8Array, index: bigint, reused = false): void {
    this.#account(key);
    this.#view.setBigUint64(0, key.index);
    this.#view.setBigUint64(8, counter);
    this.#record.set(digest, DIGEST);
    this.#record[NOTED] = reused ? 1 : 0;
    this.#view.setBigUint64(INDEX, index);
    this.#piles.add(pileOfNumber((key.index << RUN_BITS) ^ (counter >> RUN_BITS)), this.#record);
  }

  /** One that comes late, or again, takes nothing back, and proves no more than it did. */
  attest(key: Key, attestation: Attestation): void {
    const account = this.#account(key);
    const counter = BigInt(attestation.counter);
    if (counter < (account.attested ?? 0n)) return;
    account.attested = counter;
    account.malformed = BigInt(attestation.malformed);
    account.rejected = BigInt(attestation.rejected);
  }

  check(findings: Findings): KeyAccount[] {
    const covered = new Map<bigint, bigint>();
    let texts = new Texts();
    for (const { record, first, last } of this.#piles.records()) {
      if (first) texts = new Texts();
      texts.take(record);
      if (!last) continue;
      const view = new DataView(record.buffer, record.byteOffset);
      const key = view.getBigUint64(0);
      const counter = view.getBigUint64(8);
      const account = this.#keys.get(key);
      if (account !== undefined) account.seen += 1n;
      const attested = account?.attested;
      if (attested !== undefined && counter <= attested) {
        covered.set(key, (covered.get(key) ?? 0n) + 1n);
      }
      texts.check(counter, findings);
    }
    for (const [key, account] of this.#keys) {
      account.missing = (account.attested ?? 0n) - (covered.get(key) ?? 0n);
    }
    return Array.from(this.#keys.values());
  }

  #account(key: Key): KeyAccount {
    const known = this.#keys.get(key.index);
    if (known !== undefined) return known;
    const account = { kid: key.kid, seen: 0n, missing: 0n, malformed: 0n, rejected: 0n };
    this.#keys.set(key.index, account);
    return account;
  }
}

/**
 * All that came under one counter. Of n texts all but one are noted as reuse; which one came first is
 * not said by the log, because a line may stand after an entry that answers a later report.
 */
class Texts {
  #count = 0;
  #noted = 0;
  #before: Uint8Array | undefined;
  #last = 0n;

  take(record: Uint8Array): void {
    const digest = record.subarray(DIGEST, NOTED);
    if (this.#before === undefined || !equal(this.#before, digest)) this.#count += 1;
    this.#before = digest;
    this.#noted += record[NOTED] ?? 0;
    const index = new DataView(record.buffer, record.byteOffset).getBigUint64(INDEX);
    if (index > this.#last) this.#last = index;
  }

  check(counter: bigint, findings: Findings): void {
    if (this.#noted === this.#count - 1) return;
    const detail = `counter ${counter} came with ${this.#count} texts, of which ${this.#noted} are noted as reuse`;
    findings.add("counter-reuse", { index: this.#last }, detail);
  }
}

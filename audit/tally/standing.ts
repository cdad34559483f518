/**
 * Entries that others name: a line the usage that stands, an end what shows that a break is over. Which it is, and
 * of whom, is set aside by index, since it may stand anywhere before.
 */

import type { Gap } from "../evidence/state.ts";
import type { Findings } from "../finding.ts";
import { type OpenPiles, SortedPiles } from "./piles.ts";

/** index 8 · said 1 · of the entry: key 8, job 8, counter 8 · or of who names it: index 8, key or job 8, counters 16 */
const WIDTH = 41;
const KEY = 8;
const [OWN_KEY, OWN_JOB, OWN_COUNTER] = [9, 17, 25];
const [BY, OF, FIRST, LAST] = [9, 17, 25, 33];
/** What an entry is. `report`: it accounts for one, and is no usage. `delivered`: an attestation of an empty spool. */
const OWN = { usage: 0, report: 1, attestation: 2, delivered: 3 } as const;
/** What it is named for, in this order: so its own record comes before those that name it. */
const NAMED = { stands: 4, job: 5, counter: 6, silence: 7, backlog: 8 } as const;
/** Entries are numbered without gaps: neighbours share a pile, no more than are sorted at once. */
const PILE_BITS = 15n;

/** By the number of what an end says has come. */
const HEALING: Readonly<Record<number, { shown: readonly number[]; at: number; text: string }>> = {
  [NAMED.job]: { shown: [OWN.usage], at: OWN_JOB, text: "usage of job" },
  [NAMED.counter]: {
    shown: [OWN.usage, OWN.report],
    at: OWN_KEY,
    text: "a report of the gap of key",
  },
  [NAMED.silence]: {
    shown: [OWN.attestation, OWN.delivered],
    at: OWN_KEY,
    text: "attested by key",
  },
  [NAMED.backlog]: { shown: [OWN.delivered], at: OWN_KEY, text: "an empty spool of key" },
};

/** Of what is no gap: an entry that accounts for no counter has said 0. */
const ANY_COUNTER: Gap = { first: 0n, last: 2n ** 64n - 1n };

export class Standing {
  readonly #piles: SortedPiles;
  readonly #record = new Uint8Array(WIDTH);
  readonly #view = new DataView(this.#record.buffer);

  constructor(open: OpenPiles) {
    this.#piles = new SortedPiles(open, { width: WIDTH, keyWidth: KEY });
  }

  /**
   * What entry `index` is, and of which key (by its entry), job and counter; only usage has to say its job. One that
   * accounts for several counters says so for each.
   */
  note(
    index: bigint,
    as: keyof typeof OWN,
    key: bigint,
    { counter = 0n, job = 0n }: { counter?: bigint; job?: bigint } = {},
  ): void {
    this.#add(index, OWN[as], [key, job, counter, 0n]);
  }

  /** A line of entry `by` says that the usage of entry `index` stands. */
  name(index: bigint, by: bigint): void {
    this.#add(index, NAMED.stands, [by, 0n, 0n, 0n]);
  }

  /**
   * Entry `by` ends a break by entry `index`, which has to be of this job, or of this key (by its entry) and one of
   * these counters.
   */
  heal(
    index: bigint,
    by: bigint,
    missing: Exclude<keyof typeof NAMED, "stands">,
    of: bigint,
    { first, last }: Gap = ANY_COUNTER,
  ): void {
    this.#add(index, NAMED[missing], [by, of, first, last]);
  }

  check(findings: Findings): void {
    let own: DataView | undefined;
    let counters: bigint[] = [];
    for (const { record, first } of this.#piles.records()) {
      const view = new DataView(record.buffer, record.byteOffset);
      const said = view.getUint8(KEY);
      if (first) [own, counters] = [said < NAMED.stands ? view : undefined, []];
      if (said < NAMED.stands) counters.push(view.getBigUint64(OWN_COUNTER));
      if (said === NAMED.stands && own?.getUint8(KEY) !== OWN.usage) {
        const detail = `a line names entry ${view.getBigUint64(0)}, which is not usage`;
        findings.add("line-index", { index: view.getBigUint64(BY) }, detail);
      }
      const healing = HEALING[said];
      if (healing === undefined) continue;
      const { at, shown, text } = healing;
      const of = view.getBigUint64(OF);
      const isShown = shown.includes(own?.getUint8(KEY) ?? said);
      const [low, high] = [view.getBigUint64(FIRST), view.getBigUint64(LAST)];
      const isWithin = counters.some((counter) => low <= counter && counter <= high);
      if (isShown && isWithin && own?.getBigUint64(at) === of) continue;
      const detail = `healed by entry ${view.getBigUint64(0)}, which is not ${text} ${of}`;
      findings.add("break-form", { index: view.getBigUint64(BY) }, detail);
    }
  }

  #add(index: bigint, said: number, members: readonly [bigint, bigint, bigint, bigint]): void {
    this.#view.setBigUint64(0, index);
    this.#record[KEY] = said;
    for (const [i, member] of members.entries()) this.#view.setBigUint64(BY + 8 * i, member);
    this.#piles.add(Number(index >> PILE_BITS), this.#record);
  }
}

/** Events of the feed, and what acknowledgements say was counted of them, held to each other in the order of the log. */
import type { Charges } from "../export/charges.ts";
import type { Findings } from "../finding.ts";
import { type OpenPiles, SortedPiles } from "../tally/piles.ts";
import { getAmount, monthNumber, monthOfNumber, setAmount, writeMicro } from "../tally/record.ts";

/** up to or index 8 · said 1 · amount 16 · events 8 · by index 8 · billing month 4 */
const WIDTH = 45;
const SAID = 8;
const AMOUNT = 9;
const EVENTS = 25;
const BY = 33;
const MONTH = 41;
/** In this order: entries up to and without an index come before what is said of them. */
const AS = { claim: 0, event: 1 } as const;

export class EventCounts {
  readonly #piles: SortedPiles;
  readonly #record = new Uint8Array(WIDTH);
  readonly #view = new DataView(this.#record.buffer);
  readonly #claimed = new Set<string>();
  /** By billing month: the first entry that has an event. */
  readonly firsts = new Map<string, bigint>();

  constructor(open: OpenPiles) {
    // One group is one pile: a billing month.
    this.#piles = new SortedPiles(open, { width: WIDTH, keyWidth: 0 });
  }

  /** Of a usage that is billable and was charged more than nothing, or of a line of an adjustment. */
  event(month: string, index: bigint): void {
    if (!this.firsts.has(month)) this.firsts.set(month, index);
  }

  /** Entry `by` says that entries 0 … upTo−1 have so many events of the month, which come to so much. */
  claim(month: string, upTo: bigint, said: { amount: bigint; events: bigint; by: bigint }): void {
    this.#claimed.add(month);
    this.#add(month, { at: upTo, as: AS.claim, ...said });
  }

  /** @param charges all of the log's: read again only where anything was acknowledged */
  check(charges: Charges, findings: Findings): void {
    for (const month of this.#claimed) {
      for (const { adjustment, billable, index, jobs } of charges.posted(month)) {
        if (jobs > 0n && billable === 0n) continue;
        const amount = billable + adjustment;
        this.#add(month, { at: index, as: AS.event, amount, events: 1n, by: index });
      }
    }
    let [events, sum] = [0n, 0n];
    for (const { record, first } of this.#piles.records()) {
      const view = new DataView(record.buffer, record.byteOffset);
      const amount = getAmount(view, AMOUNT);
      if (first) [events, sum] = [0n, 0n];
      if (record[SAID] === AS.event) {
        events += 1n;
        sum += amount;
        continue;
      }
      const said = view.getBigUint64(EVENTS);
      if (said === events && amount === sum) continue;
      const month = monthOfNumber(view.getUint32(MONTH));
      const counted = `${said} events of ${writeMicro(amount)} compute-ms`;
      const detail = `${month}: ${counted}, and there are ${events} of ${writeMicro(sum)}`;
      findings.add("feed-counted", { index: view.getBigUint64(BY) }, detail);
    }
  }

  #add(
    month: string,
    said: { at: bigint; as: number; amount: bigint; events: bigint; by: bigint },
  ): void {
    const number = monthNumber(month);
    this.#view.setBigUint64(0, said.at);
    this.#record[SAID] = said.as;
    setAmount(this.#view, AMOUNT, said.amount);
    this.#view.setBigUint64(EVENTS, said.events);
    this.#view.setBigUint64(BY, said.by);
    this.#view.setUint32(MONTH, number);
    this.#piles.add(number, this.#record);
  }
}

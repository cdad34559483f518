/** What entries charge and adjust, set aside month by month for the files that sum it up. */
import type { Adjusted } from "../money/adjusted.ts";
import type { OpenPiles, Piles } from "../tally/piles.ts";
import { dayNumber, getAmount, monthNumber, monthOfNumber, setAmount } from "../tally/record.ts";
import { Texts } from "../tally/texts.ts";
import type { Charge } from "../tally/usage.ts";

/**
 * index 8 · said 1 · usage month 4 · day 4 · namespace 8 · project 8 · runner 8 · machine type 4 · duration 8 ·
 * gross 16 · amount 16
 */
const WIDTH = 85;
const SAID = 8;
const USAGE_MONTH = 9;
const DAY = 13;
const NAMESPACE = 17;
const PROJECT = 25;
const RUNNER = 33;
const MACHINE = 41;
const DURATION = 45;
const GROSS = 53;
const AMOUNT = 69;
const AS = { billed: 0, tracked: 1, own: 2, adjustment: 3 } as const;
const READ_BYTES_MAX = 1024 * 1024;

/** A usage's part in the sums, or a line's of an adjustment: then all but `adjustment` are 0. */
export interface Posted {
  index: bigint;
  /** Numbers of `tally/record.ts`; the day is 0 of what names no usage. */
  usage_month: bigint;
  day: bigint;
  /** 0 hosted, 1 the customer's own. */
  tracking: bigint;
  namespace: bigint;
  project: bigint;
  runner: bigint;
  /** Its number in `machines`. */
  machine: number;
  jobs: bigint;
  duration: bigint;
  gross: bigint;
  compute: bigint;
  billable: bigint;
  adjustment: bigint;
}

export class Charges {
  readonly machines = new Texts();
  readonly #piles: Piles;
  readonly #record = new Uint8Array(WIDTH);
  readonly #view = new DataView(this.#record.buffer);

  constructor(open: OpenPiles) {
    this.#piles = open(WIDTH);
  }

  charge({ billable, compute, day, duration, gross, index, keys }: Charge): void {
    const hosted = billable ? AS.billed : AS.tracked;
    this.#record[SAID] = keys.tracking === "hosted" ? hosted : AS.own;
    this.#view.setBigUint64(DURATION, duration);
    setAmount(this.#view, GROSS, gross);
    this.#add({ index, day, keys, amount: compute });
  }

  adjust(adjusted: Adjusted): void {
    this.#record[SAID] = AS.adjustment;
    this.#view.setBigUint64(DURATION, 0n);
    setAmount(this.#view, GROSS, 0n);
    this.#add(adjusted);
  }

  /** Billing months that anything is posted to, in their order. */
  get months(): string[] {
    return this.#piles.numbers().map(monthOfNumber);
  }

  /** Of one billing month. */
  *posted(month: string): Generator<Posted> {
    for (const part of this.#piles.read(monthNumber(month), READ_BYTES_MAX)) {
      for (let at = 0; at < part.length; at += WIDTH) {
        yield read(new DataView(part.buffer, part.byteOffset + at, WIDTH));
      }
    }
  }

  #add({ amount, day, index, keys }: Adjusted): void {
    this.#view.setBigUint64(0, index);
    this.#view.setUint32(USAGE_MONTH, monthNumber(keys.usage_month));
    this.#view.setUint32(DAY, dayNumber(day));
    this.#view.setBigUint64(NAMESPACE, BigInt(keys.namespace));
    this.#view.setBigUint64(PROJECT, BigInt(keys.project));
    this.#view.setBigUint64(RUNNER, BigInt(keys.runner || 0));
    this.#view.setUint32(MACHINE, this.machines.number(keys.machine_type));
    setAmount(this.#view, AMOUNT, amount);
    this.#piles.add(monthNumber(keys.billing_month), this.#record);
  }
}

function read(view: DataView): Posted {
  const said = view.getUint8(SAID);
  const amount = getAmount(view, AMOUNT);
  const isAdjustment = said === AS.adjustment;
  return {
    index: view.getBigUint64(0),
    usage_month: BigInt(view.getUint32(USAGE_MONTH)),
    day: BigInt(view.getUint32(DAY)),
    tracking: said === AS.own ? 1n : 0n,
    namespace: view.getBigUint64(NAMESPACE),
    project: view.getBigUint64(PROJECT),
    runner: view.getBigUint64(RUNNER),
    machine: view.getUint32(MACHINE),
    jobs: isAdjustment ? 0n : 1n,
    duration: view.getBigUint64(DURATION),
    gross: getAmount(view, GROSS),
    compute: isAdjustment ? 0n : amount,
    billable: said === AS.billed ? amount : 0n,
    adjustment: isAdjustment ? amount : 0n,
  };
}

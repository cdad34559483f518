/** What months were allocated, namespace by namespace, set aside for the files that deal it to lines. */
import type { AllocationLine } from "../month/allocation.ts";
import type { OpenPiles, Piles } from "../tally/piles.ts";
import { getAmount, micro, monthNumber, setAmount } from "../tally/record.ts";

/** namespace 8 · usage month 4 · included, pack, overage and absorbed 16 each */
const WIDTH = 76;
const USAGE_MONTH = 8;
const BASINS = 12;
const AMOUNT_BYTES = 16;
const READ_BYTES_MAX = 1024 * 1024;

export interface Allocated {
  namespace: bigint;
  /** A number of `tally/record.ts`. */
  usage_month: bigint;
  /** included, pack, overage, absorbed. */
  basins: bigint[];
}

/** Of several billing months, each by a number of the caller's: one store, however many there are. */
export class Allocations {
  readonly #piles: Piles;
  readonly #record = new Uint8Array(WIDTH);
  readonly #view = new DataView(this.#record.buffer);

  constructor(open: OpenPiles) {
    this.#piles = open(WIDTH);
  }

  add(month: number, namespace: string, lines: readonly AllocationLine[]): void {
    for (const { absorbed, included, overage, packs, usage_month } of lines) {
      const pack = packs.reduce((sum, { drawn }) => sum + micro(drawn), 0n);
      this.#view.setBigUint64(0, BigInt(namespace));
      this.#view.setUint32(USAGE_MONTH, monthNumber(usage_month));
      [micro(included), pack, micro(overage), micro(absorbed)].forEach((basin, i) => {
        setAmount(this.#view, BASINS + i * AMOUNT_BYTES, basin);
      });
      this.#piles.add(month, this.#record);
    }
  }

  *of(month: number): Generator<Allocated> {
    for (const part of this.#piles.read(month, READ_BYTES_MAX)) {
      for (let at = 0; at < part.length; at += WIDTH) {
        const view = new DataView(part.buffer, part.byteOffset + at, WIDTH);
        const basinAt = (i: number): bigint => getAmount(view, BASINS + i * AMOUNT_BYTES);
        yield {
          namespace: view.getBigUint64(0),
          usage_month: BigInt(view.getUint32(USAGE_MONTH)),
          basins: [0, 1, 2, 3].map(basinAt),
        };
      }
    }
  }
}

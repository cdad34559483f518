/** Lines of adjustments, and the lines that take them back: each once, and never more than there was. */
import type { AdjustmentLine } from "../../src/core/control.ts";
import type { Hash, Sha256 } from "../../src/core/hash.ts";
import { canonical } from "../../src/core/json.ts";
import { encodeUtf8 } from "../../src/core/text.ts";
import type { Findings } from "../finding.ts";
import { type OpenPiles, pileOfNumber, SortedPiles } from "../tally/piles.ts";
import { getAmount, micro, setAmount } from "../tally/record.ts";

/** index 8 · line 2 · said 1 · by index 8 · run 8 · amount 16 · digest 32 */
const WIDTH = 75;
const KEY = 10;
const SAID = 10;
const BY = 11;
const RUN = 19;
const AMOUNT = 27;
const DIGEST = 43;
/** In this order, so that a line comes before what takes it back. */
const AS = { line: 0, reversal: 1 } as const;
const NO_RUN = 2n ** 64n - 1n;

/** Where a line stands, and the credit run that it is part of. */
export interface LinePlace {
  index: bigint;
  line: number;
  run: bigint | undefined;
}

export class AdjustmentLines {
  readonly #piles: SortedPiles;
  readonly #hash: Sha256;
  readonly #record = new Uint8Array(WIDTH);
  readonly #view = new DataView(this.#record.buffer);

  constructor(open: OpenPiles, hash: Sha256) {
    this.#piles = new SortedPiles(open, { width: WIDTH, keyWidth: KEY });
    this.#hash = hash;
  }

  note({ index, line, run }: LinePlace, said: AdjustmentLine): void {
    this.#add(index, line, { as: AS.line, by: index, run, said });
  }

  /** A line of entry `by` takes this one back; `run` is the one that its own run takes back. */
  reverse({ index, line, run }: LinePlace, by: bigint, said: AdjustmentLine): void {
    this.#add(index, line, { as: AS.reversal, by, run, said });
  }

  check(findings: Findings): void {
    let stands: Line | undefined;
    let taken: bigint | undefined;
    for (const { record, first } of this.#piles.records()) {
      const line = read(record);
      if (first) [stands, taken] = [undefined, undefined];
      if (line.as === AS.line) {
        stands = line;
        continue;
      }
      const where = { index: line.by };
      const name = `line ${line.line} of entry ${line.index}`;
      if (taken !== undefined) {
        findings.add("reversal-twice", where, `entry ${taken} has taken back ${name}`);
      }
      taken = line.by;
      const fault = faultOf(line, stands);
      if (fault !== undefined) findings.add("reversal", where, `${fault} ${name}`);
    }
  }

  #add(
    index: bigint,
    line: number,
    {
      as,
      by,
      run,
      said,
    }: { as: number; by: bigint; run: bigint | undefined; said: AdjustmentLine },
  ): void {
    const { entry, namespace_id, project_id, usage_month } = said;
    const named = canonical({ entry, namespace_id, project_id, usage_month });
    this.#view.setBigUint64(0, index);
    this.#view.setUint16(8, line);
    this.#record[SAID] = as;
    this.#view.setBigUint64(BY, by);
    this.#view.setBigUint64(RUN, run ?? NO_RUN);
    setAmount(this.#view, AMOUNT, micro(said.amount));
    this.#record.set(this.#hash(encodeUtf8(named)), DIGEST);
    this.#piles.add(pileOfNumber(index), this.#record);
  }
}

interface Line {
  index: bigint;
  line: number;
  as: number;
  by: bigint;
  run: bigint;
  amount: bigint;
  digest: Hash;
}

function read(record: Uint8Array): Line {
  const view = new DataView(record.buffer, record.byteOffset);
  return {
    index: view.getBigUint64(0),
    line: view.getUint16(8),
    as: record[SAID] ?? 0,
    by: view.getBigUint64(BY),
    run: view.getBigUint64(RUN),
    amount: getAmount(view, AMOUNT),
    digest: record.subarray(DIGEST, WIDTH),
  };
}

/** What is wrong with taking it back, in words that go before its name. */
function faultOf(reversal: Line, stands: Line | undefined): string | undefined {
  if (stands === undefined || stands.by >= reversal.by) return "nothing before is";
  if (stands.run !== reversal.run) return "only a credit run takes back a run's";
  if (reversal.digest.some((byte, i) => byte !== stands.digest[i])) return "it is about other than";
  const left = stands.amount + reversal.amount;
  const within =
    stands.amount < 0n ? reversal.amount > 0n && left <= 0n : reversal.amount < 0n && left >= 0n;
  return within ? undefined : "it is more than, or of the same sign as,";
}

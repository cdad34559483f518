/** Usage that lines of adjustments name: billable, of just those names, and never taken back by more than it was. */
import type { Findings } from "../finding.ts";
import { type OpenPiles, SortedPiles } from "../tally/piles.ts";
import {
  dayNumber,
  dayOfNumber,
  getAmount,
  monthNumber,
  monthOfNumber,
  setAmount,
} from "../tally/record.ts";
import { Texts } from "../tally/texts.ts";
import type { Charge } from "../tally/usage.ts";
import type { Figure } from "./state.ts";

/**
 * usage's index 8 · by index 8 · line 2 · said 1 · namespace 8 · project 8 · usage month 4 · billing month 4 ·
 * runner 8 · machine type 4 · day 4 · amount 16
 */
const WIDTH = 75;
const KEY = 8;
const BY = 8;
const LINE = 16;
const SAID = 18;
const NAMESPACE = 19;
const PROJECT = 27;
const USAGE_MONTH = 35;
const BILLING_MONTH = 39;
const RUNNER = 43;
const MACHINE = 51;
const DAY = 55;
const AMOUNT = 59;
const AS = { usage: 0, line: 1 } as const;
/** As in `Standing`: entries are numbered without gaps, and neighbours share a pile. */
const PILE_BITS = 16n;
/** Stands for a line of no project: no usage has it. */
const NO_PROJECT = 2n ** 64n - 1n;

export class AdjustedUsage {
  readonly #piles: SortedPiles;
  readonly #record = new Uint8Array(WIDTH);
  readonly #view = new DataView(this.#record.buffer);
  readonly #machines = new Texts();
  #lines = 0;

  constructor(open: OpenPiles) {
    this.#piles = new SortedPiles(open, { width: WIDTH, keyWidth: KEY });
  }

  charge({ billable, compute, day, index, keys }: Charge): void {
    if (!billable) return;
    const { billing_month, machine_type, namespace, project, runner, usage_month } = keys;
    this.#view.setBigUint64(RUNNER, BigInt(runner || 0));
    this.#view.setUint32(MACHINE, this.#machines.number(machine_type));
    this.#view.setUint32(DAY, dayNumber(day));
    const figure = { billing_month, namespace, project, usage_month, amount: compute };
    this.#add(index, { as: AS.usage, by: index, line: 0, figure });
  }

  /** Line `line` of an entry is about the usage of entry `figure.entry`. */
  adjust(figure: Figure, line: number): void {
    this.#lines += 1;
    this.#add(BigInt(figure.entry), { as: AS.line, by: figure.index, line, figure });
  }

  /** Each line is told with what else its usage is of, if there is one. */
  check(findings: Findings, tell: (adjusted: Adjusted) => void): void {
    if (this.#lines === 0) return;
    let usage: Uint8Array | undefined;
    let [charged, sum] = [0n, 0n];
    for (const { record, first } of this.#piles.records()) {
      const view = viewOf(record);
      const amount = getAmount(view, AMOUNT);
      if (first) [usage, charged, sum] = [undefined, 0n, 0n];
      if (record[SAID] === AS.usage) {
        usage ??= record.slice();
        charged = amount;
        continue;
      }
      sum += amount;
      const fault = faultOf(record, usage, { charged, sum });
      const detail = `line ${view.getUint16(LINE)} names entry ${view.getBigUint64(0)}`;
      if (fault) findings.add(fault, { index: view.getBigUint64(BY) }, detail);
      if (usage !== undefined) tell(this.#told(view, viewOf(usage)));
    }
  }

  #told(line: DataView, usage: DataView): Adjusted {
    return {
      index: line.getBigUint64(BY),
      amount: getAmount(line, AMOUNT),
      day: dayOfNumber(usage.getUint32(DAY)),
      keys: {
        billing_month: monthOfNumber(line.getUint32(BILLING_MONTH)),
        usage_month: monthOfNumber(usage.getUint32(USAGE_MONTH)),
        tracking: "hosted",
        namespace: String(usage.getBigUint64(NAMESPACE)),
        project: String(usage.getBigUint64(PROJECT)),
        runner: String(usage.getBigUint64(RUNNER)),
        machine_type: this.#machines.text(usage.getUint32(MACHINE)),
      },
    };
  }

  #add(
    index: bigint,
    {
      as,
      by,
      figure,
      line,
    }: {
      as: number;
      by: bigint;
      figure: Omit<Figure, "entry" | "index">;
      line: number;
    },
  ): void {
    const { billing_month, namespace, project, usage_month } = figure;
    this.#view.setBigUint64(0, index);
    this.#view.setBigUint64(BY, by);
    this.#view.setUint16(LINE, line);
    this.#record[SAID] = as;
    this.#view.setBigUint64(NAMESPACE, BigInt(namespace));
    this.#view.setBigUint64(PROJECT, project === "" ? NO_PROJECT : BigInt(project));
    this.#view.setUint32(USAGE_MONTH, monthNumber(usage_month));
    this.#view.setUint32(BILLING_MONTH, monthNumber(billing_month));
    setAmount(this.#view, AMOUNT, figure.amount);
    this.#piles.add(Number(index >> PILE_BITS), this.#record);
  }
}

/** What an adjustment adds to the figures that these keys choose; `day` is `""` where it names no usage. */
export type Adjusted = Pick<Charge, "day" | "index" | "keys"> & { amount: bigint };

/** Of a namespace's month, or of a project's: of no runner, and of no machine. */
export function adjustedMonth({ amount, index, project, ...figure }: Figure): Adjusted {
  const { billing_month, namespace, usage_month } = figure;
  const keys = { billing_month, namespace, usage_month, project: project || "0" };
  const none = { tracking: "hosted", runner: "0", machine_type: "" };
  return { index, amount, day: "", keys: { ...keys, ...none } };
}

function viewOf(record: Uint8Array): DataView {
  return new DataView(record.buffer, record.byteOffset);
}

function faultOf(
  line: Uint8Array,
  usage: Uint8Array | undefined,
  { charged, sum }: { charged: bigint; sum: bigint },
): "adjusted-usage" | "exceeds-original" | undefined {
  if (usage === undefined) return "adjusted-usage";
  for (let i = NAMESPACE; i < BILLING_MONTH; i += 1) {
    if (line[i] !== usage[i]) return "adjusted-usage";
  }
  return sum > 0n || sum < -charged ? "exceeds-original" : undefined;
}

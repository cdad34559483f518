/**
 * What each namespace used and what was corrected, set aside until the entries are through, then looked
 * at namespace by namespace in the order of their numbers.
 */
import type { Tracking } from "../../src/core/unit.ts";
import type { Findings } from "../finding.ts";
import { type OpenPiles, SortedPiles } from "../tally/piles.ts";
import { getAmount, monthNumber, monthOfNumber, setAmount } from "../tally/record.ts";
import type { Charge } from "../tally/usage.ts";
import { Scopes } from "./scopes.ts";
import type { Figure } from "./state.ts";

/** namespace 8 · index 8 · line 2 · said 1 · usage month 4 · billing month 4 · project 8 · duration 8 · amount 16 */
const WIDTH = 59;
const KEY = 8;
const INDEX = 8;
const LINE = 16;
const SAID = 18;
const USAGE_MONTH = 19;
const BILLING_MONTH = 23;
const PROJECT = 27;
const DURATION = 35;
const AMOUNT = 43;
const AS = { mention: 0, billed: 1, tracked: 2, own: 3, adjustment: 4 } as const;
const NO_PROJECT = 2n ** 64n - 1n;
/** Neighbouring numbers share a pile, and piles are read in the order of numbers. */
const PILE_BITS = 12n;

/** Sums of what is of one usage month, billing month and tracking. In 10⁻⁶ compute-milliseconds. */
export interface Posting {
  usage_month: string;
  billing_month: string;
  tracking: Tracking;
  jobs: bigint;
  duration: bigint;
  compute: bigint;
  billable: bigint;
  /** Whether any of its usage is billable, be it for nothing. */
  bills: boolean;
  adjustment: bigint;
}

export class Ledger {
  readonly #piles: SortedPiles;
  readonly #record = new Uint8Array(WIDTH);
  readonly #view = new DataView(this.#record.buffer);
  /** Namespaces of which some project was adjusted by itself: of the others no projects are summed. */
  readonly #projects = new Set<bigint>();

  constructor(open: OpenPiles) {
    this.#piles = new SortedPiles(open, { width: WIDTH, keyWidth: KEY });
  }

  charge({ billable, compute, duration, index, keys }: Charge): void {
    const hosted = billable ? AS.billed : AS.tracked;
    const as = keys.tracking === "hosted" ? hosted : AS.own;
    const { billing_month, namespace, project, usage_month } = keys;
    this.#set(BigInt(namespace), index, 0, as);
    this.#months(usage_month, billing_month, BigInt(project));
    this.#view.setBigUint64(DURATION, duration);
    setAmount(this.#view, AMOUNT, compute);
    this.#add(BigInt(namespace));
  }

  adjust(figure: Figure, line: number): void {
    const { amount, billing_month, entry, index, project, usage_month } = figure;
    const namespace = BigInt(figure.namespace);
    if (project !== "" && entry === "") this.#projects.add(namespace);
    this.#set(namespace, index, line, AS.adjustment);
    this.#months(usage_month, billing_month, project === "" ? NO_PROJECT : BigInt(project));
    this.#view.setBigUint64(DURATION, 0n);
    setAmount(this.#view, AMOUNT, amount);
    this.#add(namespace);
  }

  /** A namespace that has something without having used anything. */
  mention(namespace: bigint): void {
    this.#record.fill(0);
    this.#set(namespace, 0n, 0, AS.mention);
    this.#add(namespace);
  }

  /** Each namespace that anything was said of, in the order of their numbers. */
  *namespaces(findings: Findings): Generator<[namespace: string, postings: Posting[]]> {
    let postings = new Map<string, Posting>();
    let scopes = new Scopes(findings, false);
    for (const { record, first, last } of this.#piles.records()) {
      const view = new DataView(record.buffer, record.byteOffset);
      const namespace = view.getBigUint64(0);
      if (first) {
        postings = new Map();
        scopes = new Scopes(findings, this.#projects.has(namespace));
      }
      const said = read(record, view);
      if (said.as !== AS.mention) {
        post(postings, said);
        const { amount, index, project, usage_month } = said;
        if (said.as === AS.billed) scopes.charge(usage_month, project, amount);
        if (said.as === AS.adjustment) scopes.adjust({ amount, index, project, usage_month });
      }
      if (!last) continue;
      scopes.end();
      yield [String(namespace), [...postings.values()]];
    }
  }

  #set(namespace: bigint, index: bigint, line: number, as: number): void {
    this.#view.setBigUint64(0, namespace);
    this.#view.setBigUint64(INDEX, index);
    this.#view.setUint16(LINE, line);
    this.#record[SAID] = as;
  }

  #months(usage_month: string, billing_month: string, project: bigint): void {
    this.#view.setUint32(USAGE_MONTH, monthNumber(usage_month));
    this.#view.setUint32(BILLING_MONTH, monthNumber(billing_month));
    this.#view.setBigUint64(PROJECT, project);
  }

  #add(namespace: bigint): void {
    this.#piles.add(Number(namespace >> PILE_BITS), this.#record);
  }
}

interface Said {
  as: number;
  index: bigint;
  usage_month: string;
  billing_month: string;
  project: bigint | undefined;
  duration: bigint;
  amount: bigint;
}

function read(record: Uint8Array, view: DataView): Said {
  const project = view.getBigUint64(PROJECT);
  return {
    as: record[SAID] ?? 0,
    index: view.getBigUint64(INDEX),
    usage_month: monthOfNumber(view.getUint32(USAGE_MONTH)),
    billing_month: monthOfNumber(view.getUint32(BILLING_MONTH)),
    project: project === NO_PROJECT ? undefined : project,
    duration: view.getBigUint64(DURATION),
    amount: getAmount(view, AMOUNT),
  };
}

function post(postings: Map<string, Posting>, said: Said): void {
  const { amount, as, billing_month, duration, usage_month } = said;
  const tracking = as === AS.own ? "self_managed" : "hosted";
  const key = `${usage_month} ${billing_month} ${tracking}`;
  const posting = postings.get(key) ?? startPosting({ usage_month, billing_month, tracking });
  postings.set(key, posting);
  if (as === AS.adjustment) {
    posting.adjustment += amount;
    return;
  }
  posting.jobs += 1n;
  posting.duration += duration;
  posting.compute += amount;
  if (as !== AS.billed) return;
  posting.billable += amount;
  posting.bills = true;
}

function startPosting(of: Pick<Posting, "billing_month" | "tracking" | "usage_month">): Posting {
  const zero = { jobs: 0n, duration: 0n, compute: 0n, billable: 0n, adjustment: 0n };
  return { ...of, ...zero, bills: false };
}

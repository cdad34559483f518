/**
 * What must hold before a month is cut off (docs/months.md), each with what it was seen by. All of it is a
 * function of the entries before the cut-off, so that it can be asked again at any time.
 */
import { headerSegment } from "../../core/jws.ts";
import type { ConditionCode, Evidence } from "../../core/month/statement.ts";
import type { Closing } from "../../core/month.ts";
import type { KeyState, Prefix } from "../../core/prefix.ts";
import { TYP } from "../../core/report.ts";
import { epochMs, instantText, monthOf, nextMonth } from "../../core/unit.ts";
import { readOpenBreaks } from "../../store/breaks.ts";
import type { Transaction } from "../../store/connect.ts";
import { countUnresolved } from "../../store/held-reports.ts";
import {
  firstAt,
  readAccounted,
  readAttested,
  readBillable,
  readCovered,
  readFirstPosted,
} from "../../store/month-conditions.ts";
import { readMonthEnds } from "../../store/month-ends.ts";
import { laterOf } from "../log/held.ts";

export interface Cutting {
  tx: Transaction;
  log: string;
  month: string;
  /** The cut-off: entries 0 … below−1 are looked at. */
  below: bigint;
  /** Of the cut-off. */
  at: string;
  /** Up to the cut-off at least; with it, nothing that counts here is another. */
  prefix: Prefix;
  /** The cut-off before it that stands. */
  before: Closing | undefined;
  closeDelayDays: bigint;
}

export interface Condition<Code extends string = ConditionCode> {
  code: Code;
  evidence: Evidence;
  /** What is missing, for a person to read; absent: it holds. */
  missing?: string;
}

const DAY_MS = 86_400_000n;

/** In the order of `CONDITIONS`. */
export async function conditions(cutting: Cutting): Promise<Condition[]> {
  const keys = await owingKeys(cutting);
  return [
    await order(cutting),
    delay(cutting),
    await unresolved(cutting, "conflict"),
    await unresolved(cutting, "hold"),
    await breaks(cutting),
    await attestations(cutting, keys),
    await coverage(cutting, keys),
    await accounts(cutting),
  ];
}

/** Its first instant. */
export function startOf(month: string): string {
  return `${month}T00:00:00.000Z`;
}

/** Of each that does not hold. */
export function missingIn(found: readonly Condition<string>[]): string[] {
  return found.flatMap(({ code, missing }) => (missing ? [`${code}: ${missing}`] : []));
}

/** The first instant after the month. */
export function endOf(month: string): string {
  return `${nextMonth(month)}T00:00:00.000Z`;
}

function condition(code: ConditionCode, evidence: Evidence, missing: string | false): Condition {
  return { code, evidence, ...(missing !== false && { missing }) };
}

async function order({ tx, log, month, below, before, prefix }: Cutting): Promise<Condition> {
  if (before === undefined) {
    const first = await readFirstPosted(tx, log, below);
    const isLeft = first !== undefined && first < month;
    if (isLeft) return condition("order", { before: "" }, `usage is posted to ${first}`);
    // Every month after it would have to be closed, too.
    const billed = monthOf(prefix.billingFrom);
    const isIdle = month < billed && month !== first;
    return condition("order", { before: "" }, isIdle && `nothing is billed before ${billed}`);
  }
  const next = nextMonth(before.month);
  if (month !== next) return condition("order", { before: before.month }, `${next} is the next`);
  const ends = await readMonthEnds(tx, log);
  const isClosed = ends.some(({ closing, index }) => closing === before.index && index < below);
  return condition("order", { before: before.month }, !isClosed && `${before.month} is not closed`);
}

function delay({ month, at, closeDelayDays }: Cutting): Condition {
  const end = endOf(month);
  const over = instantText(epochMs(end) + Number(closeDelayDays * DAY_MS));
  return condition("delay", { at, end }, at < over && `not before ${over}`);
}

async function unresolved(
  { tx, log, month, below }: Cutting,
  kind: "conflict" | "hold",
): Promise<Condition> {
  const { count, first } = await countUnresolved(tx, log, { kind, until: endOf(month), below });
  return none(`${kind}s`, count, first ?? undefined);
}

async function breaks({ tx, log, month, below }: Cutting): Promise<Condition> {
  const open = await readOpenBreaks(tx, log, below, month);
  return none("breaks", BigInt(open.length), open[0]?.index);
}

function none(
  code: "conflicts" | "holds" | "breaks",
  open: bigint,
  first: bigint | undefined,
): Condition {
  const missing = first !== undefined && `${open} open, the first is entry ${first}`;
  return condition(code, { open: String(open) }, missing);
}

/**
 * Those that could report a hosted build of the month, also where they came after it: not ended before it began,
 * and of a hosted runner that was the log's before its end. Of a month in which nothing could be billed nobody owes
 * anything.
 */
async function owingKeys({ tx, log, month, below, prefix }: Cutting): Promise<KeyState[]> {
  if (month < monthOf(prefix.billingFrom)) return [];
  const first = await firstAt(tx, log, startOf(month), below);
  return [...prefix.keys].filter(({ ended = below, enrolment }) => {
    return ended >= first && hostedOf(prefix, enrolment, month).length > 0;
  });
}

function hostedOf(prefix: Prefix, enrolment: bigint, month: string) {
  const runners = prefix.runnersDuring(enrolment, { start: startOf(month), end: endOf(month) });
  return runners.filter(({ tracking }) => tracking === "hosted");
}

/**
 * After the month's end; of a key that named its last counter an attestation of that will do, and so will all up to
 * it. What a revocation says of a key is one person's word, and spares nobody to ask what else it signed.
 */
async function attestations(
  { tx, log, month, below }: Cutting,
  keys: readonly KeyState[],
): Promise<Condition> {
  const asked = keys.map(({ kid }) => ({ kid, signer: headerSegment(kid, TYP.attestation) }));
  const attested = await readAttested(tx, log, asked, { since: endOf(month), below });
  const said = new Map(attested.map((key) => [key.kid, key]));
  const silent = keys.filter(({ kid, final }) => {
    const { counter = -1n, issued_at = null } = said.get(kid) ?? {};
    return issued_at === null && (final === undefined || counter < final);
  });
  const ended = silent.flatMap(({ kid, ended: end, final }) => {
    const signer = headerSegment(kid, TYP.attestation);
    return end === undefined ? [] : [{ kid, signer, end, final }];
  });
  const excused = await readAccounted(tx, log, ended, below);
  const [first, ...more] = silent.filter(({ kid }) => !excused.has(kid));
  const missing = first !== undefined && `${more.length + 1} keys, the first is ${first.kid}`;
  const oldest = attested.flatMap(({ issued_at }) => issued_at ?? []).sort()[0] ?? "";
  return condition("attestations", { keys: String(keys.length), oldest }, missing);
}

async function coverage(
  { tx, log, month, below, prefix }: Cutting,
  keys: readonly KeyState[],
): Promise<Condition> {
  const [start, until] = [startOf(month), endOf(month)];
  const since = new Map<string, string>();
  for (const line of keys.flatMap(({ enrolment }) => hostedOf(prefix, enrolment, month))) {
    const known = since.get(line.runner_id);
    if (known === undefined || line.effective_from < known) {
      since.set(line.runner_id, line.effective_from);
    }
  }
  const runners = Array.from(since, ([runner, from]) => {
    return { runner, since: laterOf(from, start) };
  });
  const covered = await readCovered(tx, log, runners, { until, below });
  const [first, ...more] = runners.filter(({ runner }) => (covered.get(runner) ?? "") < until);
  const missing = first !== undefined && `${more.length + 1} runners, the first is ${first.runner}`;
  const least = [...covered.values()].sort()[0] ?? "";
  return condition("coverage", { runners: String(runners.length), until: least }, missing);
}

async function accounts({ tx, log, month, below }: Cutting): Promise<Condition> {
  const billable = await readBillable(tx, log, month, { until: endOf(month), below });
  const [first, ...more] = billable.filter(({ account_id }) => account_id === null);
  const missing =
    first !== undefined && `${more.length + 1} namespaces, the first is ${first.namespace_id}`;
  return condition("accounts", { namespaces: String(billable.length) }, missing);
}

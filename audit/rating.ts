/**
 * Rating, a second time (DESIGN §6). Nothing of the service's own rating is used: lists are scanned
 * from their end, a fraction is two integers, and every step is the plainest that can be written. Where
 * both implementations agree on every entry, a fault would have to have been made twice.
 */
import type { Body, EnrolledRunner } from "../src/core/entry.ts";
import type { Report } from "../src/core/report.ts";
import { inForce, type State } from "./prefix/state.ts";

export type Rating = Omit<Body<"usage">, "hold" | "jws">;

interface Fraction {
  top: bigint;
  bottom: bigint;
  /** In lowest terms. */
  text: string;
}

const ZERO = fraction(0n, 1n);
const MICRO = 1_000_000n;
/** Digits before the point of what one build comes to: beyond that nothing has a rate. */
const CHARGE_DIGITS_MAX = 21;

/** Whose the build is: the enrolment that lets it be reported, and the runner's line in force when it ended. */
export interface Speaker {
  enrolment: bigint;
  runner: EnrolledRunner;
}

/** Undefined where no rate is to be had. */
export function rate(
  state: State,
  report: Report,
  { enrolment, runner }: Speaker,
): Rating | undefined {
  const { duration_ms, failure_reason, finished_at } = report.usage;
  const card = inForce(state.cards.get(runner.tracking), finished_at);
  if (card === undefined) return undefined;
  const machine = machineFactor(card, runner.machine_type);
  if (machine === undefined) return undefined;

  const projectClass = inForce(state.classes.get(report.job.project_id), finished_at)?.class;
  const excused = card.not_billable.includes(failure_reason);
  const text = excused ? undefined : own(card.project_factors, projectClass ?? "standard");
  const share = text === "monthly_minutes/300000";
  const limit = share
    ? inForce(state.limits.get(report.job.root_namespace_id), finished_at)
    : undefined;
  const discount = share ? shareOf(limit?.monthly_minutes) : text && readFraction(text);

  let factor = excused ? ZERO : machine;
  if (discount && isLess(discount, factor)) factor = discount;

  const compute_ms = charge(duration_ms, factor);
  if (compute_ms.indexOf(".") > CHARGE_DIGITS_MAX) return undefined;

  let reason: Rating["not_billable"] = "";
  if (excused) reason = "failure_reason";
  if (finished_at < state.billingFrom) reason = "before_billing_from";
  if (runner.tracking === "self_managed") reason = "self_managed";

  const month = `${finished_at.slice(0, 7)}-01`;
  return {
    billable: reason === "",
    billing_month: postingMonth(state, month),
    card: String(card.index),
    class: projectClass ?? "standard",
    compute_ms,
    enrolment: String(enrolment),
    factor: factor.text,
    limit: limit === undefined ? "" : String(limit.index),
    machine_type: runner.machine_type,
    not_billable: reason,
    tracking: runner.tracking,
    usage_month: month,
  };
}

/** The card's own for this machine type; undefined where it has none. */
export function machineFactor(
  { runner_factors }: Pick<Body<"rate_card">, "runner_factors">,
  machine_type: string,
): Fraction | undefined {
  const text = own(runner_factors, machine_type) ?? own(runner_factors, "*");
  return text === undefined ? undefined : readFraction(text);
}

/** Duration × factor, half even to six decimals of a compute-millisecond. */
export function charge(duration_ms: string, factor: Pick<Fraction, "top" | "bottom">): string {
  return writeMicro(halfEven(BigInt(duration_ms) * MICRO * factor.top, factor.bottom));
}

/** Cards say the same few factors for all entries, and taking one apart costs as much as using it. */
const known = new Map<string, Fraction | undefined>();
const KNOWN_MAX = 1_000;

/** A decimal or `a/b`; undefined for all else, and for a zero below the line. */
export function readFraction(text: string): Fraction | undefined {
  if (known.has(text)) return known.get(text);
  if (known.size >= KNOWN_MAX) known.clear();
  const read = parseFraction(text);
  known.set(text, read);
  return read;
}

function parseFraction(text: string): Fraction | undefined {
  const [, top, bottom] = /^([0-9]+)\/([0-9]+)$/.exec(text) ?? [];
  if (top !== undefined && bottom !== undefined) {
    return BigInt(bottom) === 0n ? undefined : fraction(BigInt(top), BigInt(bottom));
  }
  const [, whole, decimals = ""] = /^([0-9]+)(?:\.([0-9]+))?$/.exec(text) ?? [];
  if (whole === undefined) return undefined;
  return fraction(BigInt(whole + decimals), 10n ** BigInt(decimals.length));
}

/** Without minutes, or with 0 for unlimited, there is nothing to have a share of. */
function shareOf(monthlyMinutes: string | undefined): Fraction | undefined {
  const minutes = BigInt(monthlyMinutes ?? "0");
  return minutes === 0n ? undefined : fraction(minutes, 300_000n);
}

function isLess(a: Fraction, b: Fraction): boolean {
  return a.top * b.bottom < b.top * a.bottom;
}

function fraction(top: bigint, bottom: bigint): Fraction {
  const divisor = greatestCommonDivisor(top, bottom);
  return { top, bottom, text: `${top / divisor}/${bottom / divisor}` };
}

function greatestCommonDivisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : greatestCommonDivisor(b, a % b);
}

/** top ÷ bottom to a whole number, neither below zero; exactly between two, to the even one. */
export function halfEven(top: bigint, bottom: bigint): bigint {
  const below = top / bottom;
  const over = 2n * (top - below * bottom) - bottom;
  if (over < 0n) return below;
  if (over > 0n) return below + 1n;
  return below + (below % 2n);
}

function writeMicro(value: bigint): string {
  return `${value / MICRO}.${String(value % MICRO).padStart(6, "0")}`;
}

/** BYTES §4: the month itself, or the one after the last closing that was not withdrawn. */
export function postingMonth({ closings }: State, month: string): string {
  const closed = closings.at(-1)?.month;
  return closed !== undefined && month <= closed ? monthAfter(closed) : month;
}

export function monthAfter(month: string): string {
  const months = Number(month.slice(0, 4)) * 12 + Number(month.slice(5, 7));
  const year = String(Math.floor(months / 12)).padStart(4, "0");
  return `${year}-${String((months % 12) + 1).padStart(2, "0")}-01`;
}

/** Own members only: a machine type may be called `constructor`. */
function own(factors: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(factors, name) ? factors[name] : undefined;
}

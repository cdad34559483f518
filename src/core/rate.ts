/**
 * Rating (DESIGN §6): card, machine type, class and limit as the prefix has them in force at
 * `finished_at`. Nothing here asks when the report came, save the posting month.
 */
import { charge, formatComputeMs } from "./charge.ts";
import type { Body, EnrolledRunner } from "./entry.ts";
import {
  type Factor,
  formatFactor,
  lower,
  MONTHLY_SHARE,
  NOTHING,
  parseFactor,
  projectFactor,
  runnerFactor,
} from "./factor.ts";
import type { Card, Prefix } from "./prefix.ts";
import type { Report } from "./report.ts";
import { CHARGE_LIMIT, milliseconds, monthOf } from "./unit.ts";

export type Rating = Omit<Body<"usage">, "enrolment" | "hold" | "jws">;

/** What a factor depends on: of a build that has ended, or of one as if it ended now. */
export interface Build {
  readonly job: Pick<Report["job"], "project_id" | "root_namespace_id">;
  readonly usage: Pick<Report["usage"], "failure_reason" | "finished_at">;
}

/** Of a runner as it is at `finished_at`. */
export type Machine = Pick<EnrolledRunner, "machine_type" | "tracking">;

/** What prices are read from. */
export type Rates = Pick<Prefix, "billingFrom" | "card" | "limit" | "projectClass">;

interface Price {
  card: Card;
  projectClass: string;
  factor: Factor;
  /** Index of the limit that the factor is a share of, or `""`. */
  limit: string;
  not_billable: Rating["not_billable"];
}

/**
 * `runner` is the line in force at `finished_at`. Undefined, no rate is to be had: no card of its
 * tracking is in force, or the card knows neither its machine type nor `*`, or what it comes to is no
 * charge that a log holds. The card is asked first: a build whose failure is not billable needs one too.
 */
export function rate(prefix: Prefix, report: Report, runner: Machine): Rating | undefined {
  const { duration_ms, finished_at } = report.usage;
  const price = priceOf(prefix, report, runner);
  if (price === undefined) return undefined;
  const { card, factor, limit, not_billable, projectClass } = price;
  const charged = charge(milliseconds(BigInt(duration_ms)), factor);
  if (charged >= CHARGE_LIMIT) return undefined;
  const usage_month = monthOf(finished_at);
  return {
    billable: not_billable === "",
    billing_month: prefix.postingMonth(usage_month),
    card: String(card.index),
    class: projectClass,
    compute_ms: formatComputeMs(charged),
    factor: formatFactor(factor),
    limit,
    machine_type: runner.machine_type,
    not_billable,
    tracking: runner.tracking,
    usage_month,
  };
}

/** Undefined exactly where no card has a rate. */
export function priceOf(prefix: Rates, build: Build, runner: Machine): Price | undefined {
  const { job, usage } = build;
  const card = prefix.card(runner.tracking, usage.finished_at);
  const machine = card && machineFactor(card, runner.machine_type);
  if (card === undefined || machine === undefined) return undefined;

  const projectClass = prefix.projectClass(job.project_id, usage.finished_at);
  const { factor, limit } = card.not_billable.includes(usage.failure_reason)
    ? { factor: NOTHING, limit: "" }
    : withClass(prefix, build, { card, machine, projectClass });
  return { card, projectClass, factor, limit, not_billable: notBillable(prefix, build, card) };
}

/** A machine's factor is never a share of minutes: `admit` refuses it, and here it is no rate. */
function machineFactor(card: Card, machineType: string): Factor | undefined {
  const text = runnerFactor(card, machineType);
  return text === undefined ? undefined : parseFactor(text);
}

/**
 * The lower of both factors, and the index of the limit that was used: the one in force where the
 * class's factor is a share of it, whether or not that was lower or defined; otherwise `""`.
 */
function withClass(
  prefix: Rates,
  { job, usage }: Build,
  rated: { card: Card; machine: Factor; projectClass: string },
): { factor: Factor; limit: string } {
  const { card, machine, projectClass } = rated;
  const text = projectFactor(card, projectClass);
  if (text === undefined) return { factor: machine, limit: "" };
  const share = text === MONTHLY_SHARE;
  const limit = share ? prefix.limit(job.root_namespace_id, usage.finished_at) : undefined;
  const discount = parseFactor(text, BigInt(limit?.monthly_minutes ?? 0));
  return {
    factor: discount === undefined ? machine : lower(machine, discount),
    limit: limit === undefined ? "" : String(limit.index),
  };
}

/** The first reason that applies, in the order of BYTES §4. */
function notBillable(prefix: Rates, { usage }: Build, card: Card): Rating["not_billable"] {
  if (card.tracking === "self_managed") return "self_managed";
  if (usage.finished_at < prefix.billingFrom) return "before_billing_from";
  return card.not_billable.includes(usage.failure_reason) ? "failure_reason" : "";
}

/**
 * The middle of the order of judgement (BYTES §3), from the prefix, the report and the entry's own
 * `at` alone: the service, the auditor and the browser call it and cannot disagree. What comes
 * before it (form, signature, log, duplicates) and after it (conflicts) needs more than a prefix.
 */
import type { Body, EnrolledRunner, HoldCode } from "./entry.ts";
import type { KeyState, Prefix } from "./prefix.ts";
import { rate } from "./rate.ts";
import type { Report } from "./report.ts";
import { epochMs, type Tracking } from "./unit.ts";

/** What no build takes, whoever lets it in: 366 days. A few absurd ones would overflow the sums of all. */
export const DURATION_MS_MAX = 31_622_400_000n;

export type Judgement =
  | { kind: "hold"; code: HoldCode }
  | { kind: "usage"; body: Omit<Body<"usage">, "jws">; runner: EnrolledRunner };

/**
 * Judges a report that `kid` signed. A key that this prefix does not know is covered by no enrolment:
 * a writer that has not yet read the newest entries gets an answer, and then judges again.
 */
export function judge(prefix: Prefix, kid: string, report: Report, at: string): Judgement {
  const key = prefix.key(kid);
  if (key?.trustedUpTo !== undefined && BigInt(report.counter) > key.trustedUpTo) {
    return hold("key-ended");
  }
  const runner = key && coveredRunner(prefix, key, statedBy(report), report.usage.finished_at);
  if (key === undefined || runner === undefined) return hold("outside-enrolment");

  const { duration_ms, finished_at } = report.usage;
  const latest = BigInt(epochMs(at)) + BigInt(prefix.log.skew_ms);
  if (BigInt(epochMs(finished_at)) > latest) return hold("future");
  if (BigInt(duration_ms) > BigInt(prefix.log.duration_cap_ms)) return hold("over-cap");

  return rated(prefix, report, key, runner);
}

function rated(
  prefix: Prefix,
  report: Report,
  { enrolment }: KeyState,
  runner: EnrolledRunner,
): Judgement {
  const rating = rate(prefix, report, runner);
  if (rating === undefined) return hold("no-rate");
  return { kind: "usage", body: { ...rating, enrolment: String(enrolment) }, runner };
}

/**
 * The same of a report that persons let in: rated as if nothing had held it, which takes a runner that its
 * key's enrolment names, a duration that a build can have, and a rate.
 */
export function judgeReleased(prefix: Prefix, kid: string, report: Report): Judgement {
  const key = prefix.key(kid);
  const { duration_ms, finished_at } = report.usage;
  const runner = key && prefix.runner(report.runner.uuid, key.enrolment, finished_at);
  if (key === undefined || runner === undefined) return hold("outside-enrolment");
  if (BigInt(duration_ms) > DURATION_MS_MAX) return hold("over-cap");
  return rated(prefix, report, key, runner);
}

/**
 * In which tracking the report's job is looked up, before anything asks whether the key may speak for
 * it: the runner's. Undefined where the key or the runner is not enrolled: there is nothing to be a
 * duplicate of.
 */
export function trackingOf(prefix: Prefix, kid: string, report: Report): Tracking | undefined {
  return prefix.key(kid) && prefix.tracking(report.runner.uuid);
}

/** Which runner of which log says something about a build of which namespace. */
interface Stated {
  log: string;
  uuid: string;
  namespace: string;
}

/**
 * The runner as it is at an instant, if the key may speak for it. Which runners and namespaces a key
 * speaks for is said by its own enrolment alone: a later one for the same runner widens nothing.
 */
export function coveredRunner(
  prefix: Prefix,
  key: KeyState,
  { log, uuid, namespace }: Stated,
  instant: string,
): EnrolledRunner | undefined {
  const enrolment = prefix.enrolment(key.enrolment);
  const covered = enrolment?.runners.some(
    (line) =>
      line.uuid === uuid &&
      (line.runner_type === "instance" || enrolment.namespaces.includes(namespace)),
  );
  return covered && log === prefix.id ? prefix.runner(uuid, key.enrolment, instant) : undefined;
}

function statedBy({ job, log, runner }: Report): Stated {
  return { log, uuid: runner.uuid, namespace: job.root_namespace_id };
}

function hold(code: HoldCode): Judgement {
  return { kind: "hold", code };
}

/** What is strange in a log by itself, with nobody to hold it against (DESIGN §11). Never usage, and never a refusal. */
import { type Finding, fingerprint } from "./break.ts";
import { formatComputeMs, MINUTE, parseComputeMs } from "./charge.ts";
import type { Body } from "./entry.ts";
import { type Sha256, sha256 } from "./hash.ts";
import { instantText, monthOf } from "./unit.ts";

const HOUR_MS = 3_600_000n;
const DAYS = 28n;

export interface AnomalyBounds {
  /** The longest that any job may run, milliseconds. */
  readonly timeout_ms: bigint;
  /** How many jobs a runner may have at once, by its number; else it is learnt from its hours before. */
  readonly capacity: ReadonlyMap<string, bigint>;
  /** A runner whose capacity nobody has said may have so many times what it ever had. */
  readonly learnt_factor: bigint;
  /** A namespace's day is a jump beyond so many times the mean of the 28 before … */
  readonly jump_factor: bigint;
  /** … and beyond so many compute minutes. */
  readonly jump_floor_minutes: bigint;
  /** Between a runner host's clock and ours, milliseconds. */
  readonly clock_offset_ms: bigint;
}

export const ANOMALY_BOUNDS: AnomalyBounds = {
  timeout_ms: 24n * HOUR_MS,
  capacity: new Map(),
  learnt_factor: 2n,
  jump_factor: 10n,
  jump_floor_minutes: 10_000n,
  clock_offset_ms: 60_000n,
};

export interface LongJob {
  readonly index: bigint;
  readonly job_id: string;
  readonly namespace_id: string;
  readonly runner_id: string;
  readonly duration_ms: bigint;
  readonly usage_month: string;
}

export function overTimeout(job: LongJob, { timeout_ms }: AnomalyBounds): Finding[] {
  if (job.duration_ms <= timeout_ms) return [];
  const { duration_ms, index, ...about } = job;
  return [
    {
      code: "over-timeout",
      about: { job_id: job.job_id },
      detail: `${duration_ms} ms, of at most ${timeout_ms}`,
      difference_ms: duration_ms - timeout_ms,
      job_id: about.job_id,
      month: job.usage_month,
      namespace_id: about.namespace_id,
      runner_id: about.runner_id,
      tracking: "hosted",
      usage: index,
    },
  ];
}

interface BusyHour {
  readonly runner_id: string;
  /** Its first instant. */
  readonly hour: string;
  /** Of all jobs together, as far as they ran within the hour. */
  readonly duration_ms: bigint;
  /** The most of any hour of the 28 days before; 0 if there is none. */
  readonly before_ms: bigint;
  /** How many of those hours had any job. */
  readonly hours_before: bigint;
}

/** Hours and days with usage from which anything is learnt: of a shorter history nothing is strange. */
const [HOURS_MIN, DAYS_MIN] = [24n, 7n];

/** More job time than there is in an hour of as many jobs as a runner can have. */
export function overCapacity(
  { before_ms, duration_ms, hour, hours_before, runner_id }: BusyHour,
  { capacity, learnt_factor }: AnomalyBounds,
): Finding[] {
  const most = hours_before < HOURS_MIN ? 0n : (before_ms + HOUR_MS - 1n) / HOUR_MS;
  const learnt = most * learnt_factor;
  const jobs = capacity.get(runner_id) ?? learnt;
  // Of a runner of which nothing is known nothing is strange.
  if (jobs === 0n || duration_ms <= jobs * HOUR_MS) return [];
  return [
    {
      code: "over-capacity",
      about: { hour, runner_id },
      detail: `${duration_ms} ms of jobs in the hour of ${hour}, of at most ${jobs} jobs at once`,
      difference_ms: duration_ms - jobs * HOUR_MS,
      month: monthOf(hour),
      runner_id,
      tracking: "hosted",
    },
  ];
}

export interface NamespaceDay {
  readonly namespace_id: string;
  /** `YYYY-MM-DD` */
  readonly day: string;
  /** Compute-milliseconds with six decimals, as what the 28 days before have together. */
  readonly amount: string;
  readonly before: string;
  /** How many of the 28 days had any. */
  readonly days_before: bigint;
}

export function suddenJump(
  { amount, before, day, days_before, namespace_id }: NamespaceDay,
  { jump_factor, jump_floor_minutes }: AnomalyBounds,
): Finding[] {
  const [used, earlier] = [parseComputeMs(amount), parseComputeMs(before)];
  // Times 28 on both sides: a mean would be rounded.
  const jumped = used * DAYS > earlier * jump_factor && used > jump_floor_minutes * MINUTE;
  if (days_before < DAYS_MIN || !jumped) return [];
  return [
    {
      code: "sudden-jump",
      about: { day, namespace_id },
      detail: `${formatComputeMs(used)} compute-ms by now on ${day}, ${formatComputeMs(earlier)} in the 28 days before`,
      month: `${day.slice(0, "YYYY-MM".length)}-01`,
      namespace_id,
      tracking: "hosted",
    },
  ];
}

interface ClockOffset {
  readonly kid: string;
  /** Of the attestation's entry. */
  readonly at: string;
  readonly offset_ms: bigint;
}

/** Once a day for each key. */
export function clockOffset(
  { at, kid, offset_ms }: ClockOffset,
  { clock_offset_ms }: AnomalyBounds,
): Finding[] {
  if (offset_ms <= clock_offset_ms && -offset_ms <= clock_offset_ms) return [];
  return [
    {
      code: "clock-offset",
      about: { day: at.slice(0, "YYYY-MM-DD".length), kid },
      detail: `the host's clock is off by ${offset_ms} ms, attested at ${at}`,
      difference_ms: offset_ms,
      kid,
      month: monthOf(at),
      tracking: "hosted",
    },
  ];
}

/** Counters first … last of a key, of which so many have not come since this gap was noticed. */
interface CounterGap {
  readonly kid: string;
  readonly first: bigint;
  readonly last: bigint;
  readonly missing: bigint;
  readonly since: number;
}

export function counterGap(
  { first, kid, last, missing, since }: CounterGap,
  now: number,
  grace_ms: number,
): Finding[] {
  if (missing === 0n || now < since + grace_ms) return [];
  return [
    {
      code: "counter-gap",
      about: { first: String(first), kid },
      detail: `${missing} of counters ${first} to ${last} have not come`,
      kid,
      month: monthOf(instantText(since)),
      tracking: "hosted",
    },
  ];
}

const GAP = /^[0-9]+ of counters ([0-9]{1,19}) to ([0-9]{1,19}) have not come$/;

/** The counters that a `counter-gap` is about, in its own words; undefined: it is not of this form. */
export function gapOf(
  { code, detail, fingerprint: print, kid, tracking }: Body<"break">,
  hash: Sha256 = sha256,
): { first: bigint; last: bigint } | undefined {
  const [, first, last] = GAP.exec(detail) ?? [];
  if (first === undefined || last === undefined) return undefined;
  const isOwn = fingerprint({ about: { first, kid }, code, tracking }, hash) === print;
  const gap = { first: BigInt(first), last: BigInt(last) };
  return isOwn && gap.first <= gap.last ? gap : undefined;
}

/** `missing-attestation`: nothing was attested since then; `undelivered`: something waited ever since. */
export function silence(
  code: "missing-attestation" | "undelivered",
  kid: string,
  since: number | undefined,
  { grace_ms, now }: { grace_ms: number; now: number },
): Finding[] {
  if (since === undefined || now < since + grace_ms) return [];
  const at = instantText(since);
  return [
    {
      code,
      about: { kid, since: at },
      detail: `since ${at}`,
      kid,
      month: monthOf(at),
      tracking: "hosted",
    },
  ];
}

/** One line of gitlab-runner's usage log (BYTES §6): the only source of durations. */
import { LosslessNumber, parse } from "lossless-json";
import { z } from "zod";
import { durationMs } from "../core/duration.ts";
import { Report } from "../core/report.ts";
import { decodeUtf8 } from "../core/text.ts";
import { NonEmptyText } from "../core/unit.ts";

/** What a report says of a build, before the agent adds log, counter and time of signing. */
const Measurement = Report.omit({ counter: true, issued_at: true, log: true }).extend({
  runner: Report.shape.runner.omit({ machine_id: true }), // not in the runner's file
});
export type Measurement = z.infer<typeof Measurement>;

export type Line =
  | { kind: "empty" }
  | { kind: "malformed"; reason: string }
  | { kind: "rejected"; uniqueId: string }
  | { kind: "record"; uniqueId: string; measurement: Measurement };

/** gitlab-runner's names; what else lies in the folder is left alone. */
export const USAGE_LOG = /^usage-log-[\w.-]{1,200}\.json$/;

/** Go's zero time: the runner never set it. */
const ZERO_TIME = "0001-01-01T00:00:00.000Z";
const EMPTY = /^[ \t\r]*$/;
/** The runner writes UTC. Another offset is not the runner's hand, so no meaning is guessed into it. */
const RFC3339_NANO_UTC = /^([0-9-]{10}T[0-9:]{8})(?:\.([0-9]{1,9}))?Z$/;
/** In valid JSON, a string before a colon is a name. */
const NAME_OR_BRACE = /("[^"\\]*(?:\\.[^"\\]*)*")[ \t\r\n]*(:)?|[{}]/g;

const Numeric = z.instanceof(LosslessNumber).transform((number) => number.value);
const Time = z
  .string()
  .transform(truncate)
  .refine((text) => text !== ZERO_TIME);
const Identified = z.object({ id: Numeric });

/** The parts that are read; Go's other members are ignored, as it adds some with each version. */
const UsageRecord = z.object({
  uuid: z.string(),
  runner: z.object({ executor: z.string(), system_id: z.string(), uuid: z.string() }),
  job: z.object({
    id: Numeric,
    pipeline_id: Numeric,
    duration_seconds: Numeric,
    status: z.string(),
    failure_reason: z.string(),
    started_at: Time,
    finished_at: Time,
    project: Identified,
    root_namespace: Identified,
    instance: z.object({ unique_id: NonEmptyText }),
  }),
});

/** Never throws: a line is what some program wrote, or what a crash left of it. */
export function readLine(bytes: Uint8Array): Line {
  const text = decodeUtf8(bytes);
  if (text === undefined) return { kind: "malformed", reason: "not UTF-8" };
  if (EMPTY.test(text)) return { kind: "empty" };
  const value = parseLossless(text);
  if (value === undefined) return { kind: "malformed", reason: "not JSON" };
  if (hasNameTwice(text)) return { kind: "malformed", reason: "a name twice" };
  const record = UsageRecord.safeParse(value);
  if (!record.success) return malformed(record.error);
  return measure(record.data);
}

function measure({ uuid, runner, job }: z.infer<typeof UsageRecord>): Line {
  const uniqueId = job.instance.unique_id;
  const negative = job.duration_seconds.startsWith("-");
  const duration = negative ? 0n : durationMs(job.duration_seconds);
  if (duration === undefined) return { kind: "malformed", reason: "job.duration_seconds" };
  const measurement = Measurement.safeParse({
    id: uuid,
    job: {
      id: job.id,
      pipeline_id: job.pipeline_id,
      project_id: job.project.id,
      root_namespace_id: job.root_namespace.id,
    },
    runner,
    usage: {
      duration_ms: String(duration),
      failure_reason: job.failure_reason,
      finished_at: job.finished_at,
      started_at: job.started_at,
      status: job.status,
    },
  });
  if (!measurement.success) return malformed(measurement.error);
  // Also -0: only a clock that ran backwards makes a sign, and nothing is signed on its word.
  if (negative) return { kind: "rejected", uniqueId };
  return { kind: "record", uniqueId, measurement: measurement.data };
}

function malformed(error: z.ZodError): Line {
  const path = error.issues[0]?.path.join(".") ?? "";
  return { kind: "malformed", reason: path === "" ? "not a usage record" : path };
}

/** Numbers keep their text: job ids pass 2^53. */
function parseLossless(text: string): unknown {
  try {
    return parse(text);
  } catch {
    return undefined; // no JSON, or nested deeper than the stack
  }
}

/** The parser itself says nothing of a name that comes twice with the same value. */
function hasNameTwice(json: string): boolean {
  const open: Set<string>[] = [];
  for (const [token, name, colon] of json.matchAll(NAME_OR_BRACE)) {
    if (token === "{") open.push(new Set());
    else if (token === "}") open.pop();
    else if (name !== undefined && colon !== undefined) {
      const names = open.at(-1);
      const decoded = name.includes("\\") ? String(JSON.parse(name)) : name.slice(1, -1);
      if (names?.has(decoded)) return true;
      names?.add(decoded);
    }
  }
  return false;
}

/** To milliseconds, so that 23:59:59.999999999 stays in its month. Other texts come back as they are. */
function truncate(time: string): string {
  const [, seconds, fraction = ""] = RFC3339_NANO_UTC.exec(time) ?? [];
  return seconds === undefined ? time : `${seconds}.${fraction.padEnd(3, "0").slice(0, 3)}Z`;
}

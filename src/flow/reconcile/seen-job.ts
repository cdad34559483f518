/**
 * A job as GitLab tells of it, in the two forms that it has for one: its API's, and its webhooks'. Members that
 * nobody reads are ignored: GitLab adds some with each version. Numbers keep their text, since ids pass 2^53 and
 * no duration becomes a float.
 */
import { LosslessNumber, parse } from "lossless-json";
import { z } from "zod";
import { durationMs } from "../../core/duration.ts";
import { IntegerText, instantText, Word } from "../../core/unit.ts";

/** What was said; of a job that no runner has taken there is no runner. */
export interface SeenJob {
  job_id: string;
  runner_id?: string;
  project_id?: string;
  namespace_id?: string;
  status: string;
  created_at?: string;
  started_at?: string;
  finished_at?: string;
  duration_ms?: bigint;
}

/** `2021-02-23T02:41:37.886Z`, with any offset; `2021-02-23 02:41:37 UTC` in webhooks of before 2025. */
const TIME =
  /^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,9})? ?(Z|UTC|[+-][0-9]{2}:?[0-9]{2})$/;

const Id = z
  .instanceof(LosslessNumber)
  .transform(({ value }) => value)
  .pipe(IntegerText);
const Time = z.string().regex(TIME).transform(instantOf);
/** What lies outside is no time of a job's, and may have no instant of four digits. */
const [FIRST_YEAR, LAST_YEAR] = [1970, 9998];
/** A negative one is a clock that stepped: as good as none. */
const Duration = z.instanceof(LosslessNumber).transform(({ value }) => durationMs(value));
const Identified = z.object({ id: Id });

/** The entity of `GET /runners/:id/jobs`, and of `GET /projects/:id/jobs/:job`, which names the runner. */
const ApiJob = z.object({
  id: Id,
  status: Word.min(1),
  created_at: Time.nullish(),
  started_at: Time.nullish(),
  finished_at: Time.nullish(),
  duration: Duration.nullish(),
  project: Identified.nullish(),
  runner: Identified.nullish(),
});

/** The payload of a "Job Hook". */
const Hook = z.object({
  object_kind: z.literal("build"),
  build_id: Id,
  build_status: Word.min(1),
  build_started_at: Time.nullish(),
  build_finished_at: Time.nullish(),
  build_duration: Duration.nullish(),
  project_id: Id.nullish(),
  runner: Identified.nullish(),
});

/** One page of jobs. Undefined for anything else: what cannot be read must not pass for an empty page. */
export function readJobList(text: string): SeenJob[] | undefined {
  const jobs = z.array(ApiJob).safeParse(parsed(text)).data;
  return jobs?.map(seenByApi);
}

/** One job. */
export function readOneJob(text: string): SeenJob | undefined {
  const job = ApiJob.safeParse(parsed(text)).data;
  return job && seenByApi(job);
}

/** Undefined for what is no job's event. */
export function readJobHook(text: string): SeenJob | undefined {
  const hook = Hook.safeParse(parsed(text)).data;
  if (hook === undefined) return undefined;
  const { build_duration, build_finished_at, build_started_at, project_id, runner } = hook;
  return {
    job_id: hook.build_id,
    status: hook.build_status,
    ...given("runner_id", runner?.id),
    ...given("project_id", project_id),
    ...given("started_at", build_started_at),
    ...given("finished_at", build_finished_at),
    ...given("duration_ms", build_duration),
  };
}

function seenByApi(job: z.infer<typeof ApiJob>): SeenJob {
  return {
    job_id: job.id,
    status: job.status,
    ...given("runner_id", job.runner?.id),
    ...given("project_id", job.project?.id),
    ...given("created_at", job.created_at),
    ...given("started_at", job.started_at),
    ...given("finished_at", job.finished_at),
    ...given("duration_ms", job.duration),
  };
}

function given<K extends keyof SeenJob>(
  name: K,
  value: SeenJob[K] | null | undefined,
): Pick<SeenJob, K> | object {
  return value === null || value === undefined ? {} : { [name]: value };
}

/** Undefined for what is no instant, or none that a job can have: as good as none, and the others are read. */
function instantOf(text: string): string | undefined {
  const [, day, time, fraction = "", offset] = TIME.exec(text) ?? [];
  const zone = offset === "UTC" ? "Z" : offset;
  // To milliseconds, never up: what ended within a month stays in it.
  const epoch = Date.parse(`${day}T${time}${fraction.slice(0, 4)}${zone}`);
  const year = new Date(epoch).getUTCFullYear();
  return year >= FIRST_YEAR && year <= LAST_YEAR ? instantText(epoch) : undefined;
}

function parsed(text: string): unknown {
  try {
    return parse(text);
  } catch {
    return undefined; // no JSON, or nested deeper than the stack
  }
}

/**
 * What an agent says while jobs run (DESIGN §9): how long each of them has run so far. Cumulative, so that
 * a lost, late or repeated heartbeat is healed by the next. The payload of a JWS as in core/report.ts.
 */
import { z } from "zod";
import { InstantText, IntegerText, LogId, NonEmptyText, Text } from "../unit.ts";

/** A compact JWS holds about 25 of usual length; a host that runs more sends several. */
export const HEARTBEAT_JOBS_MAX = 64;

/** `timeout_ms`: after how long the runner would end the job by itself, where that is known. */
export const RunningJob = z.strictObject({
  elapsed_ms: IntegerText,
  id: IntegerText,
  project_id: IntegerText,
  root_namespace_id: IntegerText,
  timeout_ms: IntegerText.exactOptional(),
});
export type RunningJob = z.infer<typeof RunningJob>;

/**
 * `issued_at` says when it was signed. What counts is the larger `elapsed_ms`; how long it goes on counting is
 * reckoned from `issued_at`, by which nothing else is judged.
 */
export const Heartbeat = z.strictObject({
  issued_at: InstantText,
  jobs: z.array(RunningJob).min(1).max(HEARTBEAT_JOBS_MAX),
  log: LogId,
  runner: z.strictObject({ system_id: Text, uuid: NonEmptyText }),
});
export type Heartbeat = z.infer<typeof Heartbeat>;

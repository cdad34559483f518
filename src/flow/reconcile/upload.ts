/** Jobs that a platform uploads, where nobody may ask it: an instance that is cut off from the network. */
import { z } from "zod";
import { durationMs } from "../../core/duration.ts";
import { InstantText, IntegerText, instantText, Word } from "../../core/unit.ts";
import type { Clock } from "../clock.ts";
import { assertOwnWord } from "../control/own-word.ts";
import { type Covering, cover } from "./cover.ts";
import type { SeenJob } from "./seen-job.ts";
import { type Taking, take } from "./take.ts";

export const UPLOADED_MAX = 1_000;

/** Up to the year 9998: a grace after it is an instant, too. */
const JobTime = InstantText.refine((text) => text >= "1970" && text < "9999");

const UploadedJob = z.strictObject({
  job_id: IntegerText,
  runner_id: IntegerText,
  project_id: IntegerText.exactOptional(),
  namespace_id: IntegerText.exactOptional(),
  status: Word.min(1),
  started_at: JobTime.exactOptional(),
  finished_at: JobTime.exactOptional(),
  /** Seconds, in decimal as GitLab has them. */
  duration: z
    .string()
    .refine((text) => durationMs(text) !== undefined)
    .exactOptional(),
});

/** All jobs of the runner that finished before `to` were uploaded, with this request or earlier. */
const CoveredRunner = z.strictObject({
  runner_id: IntegerText,
  to: InstantText,
  /** Also those from before the service's database was recovered: they were uploaded again. */
  anew: z.literal(true).exactOptional(),
});

export const Upload = z.strictObject({
  jobs: z.array(UploadedJob).max(UPLOADED_MAX),
  covered: z.array(CoveredRunner).max(128).exactOptional(),
});
export type Upload = z.infer<typeof Upload>;

export interface Uploaded {
  log: string;
  /** Jobs of runners that the log has enrolled; others are left out. */
  kept: string;
  /** Entries that say how far the runners are covered now. */
  covered: string[];
}

/**
 * @param asker.by opaque id of the principal who asks
 * @param asker.isPerson who asks is no system: under dual control nobody ends a difference alone
 * @throws Problem `not-found`: no such log, or a covered runner that it has not enrolled; `approval-required`,
 *   `busy`
 */
export async function upload(
  uploading: Taking & Covering,
  { by, isPerson = false, log }: { log: string; by: string; isPerson?: boolean },
  { covered = [], jobs }: Upload,
): Promise<Uploaded> {
  assertOwnWord(await uploading.appender.prefix(log), isPerson);
  const kept = await take(uploading, log, jobs.map(seenBy), "upload");
  const indices: string[] = [];
  for (const { anew = false, runner_id, to } of covered) {
    const until = notAfter(uploading.clock, to);
    const runner = { runner: runner_id, to: until, by, source: "upload", anew } as const;
    const index = await cover(uploading, { log, ...runner });
    if (index !== undefined) indices.push(String(index));
  }
  return { log, kept: String(kept), covered: indices };
}

function seenBy({ duration, ...job }: z.infer<typeof UploadedJob>): SeenJob {
  const ms = duration === undefined ? undefined : durationMs(duration);
  return { ...job, ...(ms !== undefined && { duration_ms: ms }) };
}

/** What has not been yet nobody can have uploaded. */
function notAfter({ now }: Clock, to: string): string {
  const at = instantText(now());
  return to < at ? to : at;
}

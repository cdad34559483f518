/** Heartbeats as an agent signs them, of the usual runner unless they say otherwise. */
import type { Heartbeat, RunningJob } from "../../src/core/quota/heartbeat.ts";
import { TYP } from "../../src/core/report.ts";
import { NOW, UUID } from "../core/history.ts";
import { sign } from "../flow/door.ts";

const JOB: RunningJob = { elapsed_ms: "60000", id: "1", project_id: "50", root_namespace_id: "7" };

/** @param jobs of the key of this seed; a minute old and of namespace 7 unless they say otherwise */
export function heartbeatOf(
  seed: number,
  log: string,
  jobs: readonly Partial<RunningJob>[],
  uuid = UUID,
): string {
  const payload: Heartbeat = {
    issued_at: NOW,
    jobs: jobs.map((job) => ({ ...JOB, ...job })),
    log,
    runner: { system_id: "s_1", uuid },
  };
  return sign(seed, TYP.heartbeat, { ...payload });
}

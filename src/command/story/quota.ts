/** The scene of live quota: ten minutes left, two jobs that want to run, and one that goes too far. */
import { setTimeout as delay } from "node:timers/promises";
import { type Api, call } from "../api.ts";
import { type DemoBuild, GARAGE } from "../demo.ts";
import { CommandError } from "../failure.ts";
import type { QuotaFacts } from "./facts.ts";
import type { Host } from "./scenes.ts";

const MS_PER_MINUTE = 60_000;
const ASK_AGAIN_MS = 500;
const ASKED_MAX = 60;

interface Decision {
  allowed: boolean;
  job_status: string;
  reason: string;
  remaining_minutes?: string;
  as_of?: string;
  source?: string;
}

/** An instance and its log. */
interface Place {
  unique_id: string;
  log: string;
}

interface ShownQuota {
  used: { compute_minutes: string };
  live: { compute_minutes: string };
  remaining: { compute_minutes: string };
}

/** @param stopped the build that is told to stop, as its runner reports it afterwards */
export async function quotaScene(
  api: Api,
  place: Place,
  host: Host,
  { stopped, now }: { stopped: DemoBuild; now: number },
): Promise<QuotaFacts> {
  const { limit_minutes, namespace, pending, running, stopped_minutes } = GARAGE;
  const { log } = place;
  const path = `/v1/quotas/${log}/${namespace}`;
  await call(api, "PUT", path, {
    monthly_minutes: String(limit_minutes),
    beyond: "stop",
    grace_minutes: "0",
    source: "story",
    source_version: "1",
  });
  const started = await mayStart(api, log, running);
  const used = await heartbeat(host, place, limit_minutes);
  const refused = await mayStart(api, log, pending);
  const beyond = await heartbeat(host, place, stopped_minutes);
  await host.write([stopped], now);
  await host.deliver();
  const after = await call<ShownQuota>(api, "GET", path);
  return {
    namespace,
    started: factsOf(running, started),
    used: { ...factsOf(running, used), minutes: String(limit_minutes) },
    refused: factsOf(pending, refused),
    stopped: { ...factsOf(running, beyond), minutes: String(stopped_minutes) },
    reported: {
      used_minutes: after.used.compute_minutes,
      live_minutes: after.live.compute_minutes,
      remaining_minutes: after.remaining.compute_minutes,
    },
    source: started.source ?? "",
    as_of: beyond.as_of ?? "",
  };
}

/**
 * Asked as a platform asks: a job that is not let start stays pending and is asked about again. A machine that is
 * busy enough keeps Redis from answering in time, and then it is the policy that says no.
 */
async function mayStart(api: Api, log: string, job_id: string): Promise<Decision> {
  const jobs = [{ job_id, namespace_id: GARAGE.namespace, ask: "start" }];
  const path = "/v1/decisions";
  for (let asked = 1; ; asked += 1) {
    const { decisions } = await call<{ decisions: Decision[] }>(api, "POST", path, { log, jobs });
    const decision = only(decisions);
    if (decision.reason !== "policy") return decision;
    if (asked === ASKED_MAX) throw undecided();
    await delay(ASK_AGAIN_MS);
  }
}

/** The first job's, as the host says it after so many minutes. */
async function heartbeat(
  host: Host,
  { log, unique_id }: Place,
  minutes: number,
): Promise<Decision> {
  const { namespace, project, running, runner, system_id } = GARAGE;
  const job = {
    elapsed_ms: String(minutes * MS_PER_MINUTE),
    id: running,
    project_id: project,
    root_namespace_id: namespace,
  };
  const said = { uniqueId: unique_id, runner: { system_id, uuid: runner }, job };
  const decision = only(await host.heartbeat<Decision>(log, said));
  if (decision.reason === "policy") throw undecided();
  return decision;
}

/** A no of the policy is no no of the quota, and must not be told as one. */
function undecided(): CommandError {
  const why = "too little was known to decide by the quota: its Redis or its database is away";
  return new CommandError("quota-undecided", `${why}; what /readyz says tells which`);
}

function only<T>([decision]: readonly T[]): T {
  if (decision === undefined) throw new Error("story: no decision");
  return decision;
}

function factsOf(job: string, decision: Decision): QuotaFacts["started"] {
  const { allowed, job_status, remaining_minutes = "" } = decision;
  return { job, allowed, job_status, remaining_minutes };
}

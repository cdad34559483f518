/** Builds as a test tells of them, and the reports that an agent makes of them. */
import type { Report } from "../src/core/report.ts";
import { instantText } from "../src/core/unit.ts";
import type { TestKey } from "./signing.ts";

export interface TestRunner {
  uuid: string;
  runner_id: string;
  machine_type: string;
  tracking: "hosted" | "self_managed";
}

/** An enrolled key; `counter` is the last one it used. */
export interface Agent {
  kid: string;
  key: TestKey;
  counter: number;
}

/** What a test says of a build; the rest is filled in. */
export interface Build {
  job: number;
  runner: TestRunner;
  namespace?: number;
  project?: number;
  duration?: bigint;
  finished?: string;
  started?: string;
  reason?: string;
}

/** What the agent says of it in this log, finished at `now` unless the build says when. */
export function reportOf(log: string, now: number, agent: Agent, build: Build): Report {
  const finished = build.finished ?? instantText(now);
  const duration = build.duration ?? 60_000n;
  return {
    counter: String(agent.counter),
    id: `build ${build.job}`,
    issued_at: instantText(now),
    job: {
      id: String(build.job),
      pipeline_id: "1",
      project_id: String(build.project ?? 10),
      root_namespace_id: String(build.namespace ?? 1),
    },
    log: log,
    runner: { executor: "docker", system_id: "s_1", uuid: build.runner.uuid },
    usage: {
      duration_ms: String(duration),
      failure_reason: build.reason ?? "",
      finished_at: finished,
      started_at: build.started ?? instantText(Date.parse(finished) - Number(duration)),
      status: "success",
    },
  };
}

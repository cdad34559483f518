/**
 * The demo's world: one GitLab.com-like instance under GitLab's published factors, and a host's
 * usage log, in the shape that gitlab-runner's `usage_logger` writes, dated around now.
 */
import type { Setup } from "./setup.ts";

const HOST = "gitlab.example";

/** docs.gitlab.com, "Compute minutes": cost factors of GitLab-hosted runners. */
const MACHINE_FACTORS = {
  "linux-amd64-small": "1",
  "linux-amd64-medium": "2",
  "linux-amd64-large": "3",
  "linux-amd64-xlarge": "6",
  "linux-amd64-2xlarge": "12",
  "linux-amd64-gpu-medium": "7",
  "linux-arm64-small": "1",
  "linux-arm64-medium": "2",
  "linux-arm64-large": "3",
  "macos-m1-medium": "6",
  "macos-m2pro-large": "12",
  "windows-medium": "1",
};

/** The same page: discounts by kind of project, on GitLab.com only. */
const PROJECT_FACTORS = {
  open_source: "0.5",
  open_source_fork: "0.008",
  gitlab_contribution: "monthly_minutes/300000",
};

const SYSTEM_ID = "s_1818892f902b";

interface DemoRunner {
  uuid: string;
  id: string;
  tracking: "hosted" | "self_managed";
  machine_type: string;
}

const SMALL: DemoRunner = {
  uuid: "5d8f6f0e-6b64-4a39-9d8a-0f5d64a1c001",
  id: "701",
  tracking: "hosted",
  machine_type: "linux-amd64-small",
};
const MEDIUM: DemoRunner = {
  uuid: "5d8f6f0e-6b64-4a39-9d8a-0f5d64a1c002",
  id: "702",
  tracking: "hosted",
  machine_type: "linux-amd64-medium",
};
const OWN: DemoRunner = {
  uuid: "5d8f6f0e-6b64-4a39-9d8a-0f5d64a1c003",
  id: "9001",
  tracking: "self_managed",
  machine_type: "linux-own",
};

/** What the platform says that it covers. */
export const HOSTED_RUNNERS: readonly string[] = [SMALL.id, MEDIUM.id];

interface DemoProject {
  id: string;
  namespace: string;
  name: string;
  project_class: string;
}

const WEB: DemoProject = { id: "50010", namespace: "1001", name: "web", project_class: "standard" };
const API: DemoProject = { id: "50011", namespace: "1001", name: "api", project_class: "standard" };
const TOOL: DemoProject = {
  id: "50020",
  namespace: "1002",
  name: "tool",
  project_class: "open_source",
};
const APP: DemoProject = { id: "50030", namespace: "1003", name: "app", project_class: "standard" };
const BOT: DemoProject = { id: "50040", namespace: "1004", name: "bot", project_class: "standard" };

/** Names are the directory's, beside the log; the log itself holds numbers only. */
export const NAMESPACE_NAMES: Readonly<Record<string, string>> = {
  "1001": "acme",
  "1002": "libre",
  "1003": "shop",
  "1004": "garage",
};

/** The set-up of one instance, with all rules in force well before the first build. */
export function demoSetup(unique_id: string, now: number): Setup {
  const from = new Date(Date.UTC(new Date(now).getUTCFullYear() - 1, 0, 1)).toISOString();
  const card = { platform: "dotcom", effective_from: from };
  return {
    instances: [{ host: HOST, unique_id, platform: "dotcom", billing_from: from }],
    runners: [SMALL, MEDIUM, OWN].map((runner) => ({
      ...runner,
      host: HOST,
      runner_type: "instance" as const,
    })),
    namespaces: [
      { host: HOST, id: "1001", monthly_minutes: "10000" },
      { host: HOST, id: "1002", monthly_minutes: "50000" },
      { host: HOST, id: "1003", monthly_minutes: "400" },
    ],
    projects: [WEB, API, TOOL, APP, BOT].map((project) => ({ ...project, host: HOST })),
    rate_cards: [
      {
        ...card,
        tracking: "hosted",
        runner_factors: MACHINE_FACTORS,
        project_factors: PROJECT_FACTORS,
        not_billable: ["runner_system_failure"],
      },
      {
        ...card,
        tracking: "self_managed",
        runner_factors: { "*": "1" },
        project_factors: {},
        not_billable: [],
      },
    ],
  };
}

export interface DemoBuild {
  job: string;
  /** As the platform numbers it. */
  runner_id: string;
  /** The line as the runner wrote it, without its newline. */
  line: string;
  seconds: number;
  finishedAt: number;
}

export const FIRST_JOB = 9_007_199_254_740_993n; // 2^53 + 1: a number that JavaScript cannot hold
const MINUTES_BACK = 300;

/** The runner measured 12 minutes; then GitLab answered its last update with 500 for 62 more. */
export const OUTAGE = { position: 1, seconds: 720, unansweredMs: 62 * 60_000 } as const;

/** A namespace with ten minutes a month, and what runs in it: a build that stops at the eleventh. */
export const GARAGE = {
  namespace: BOT.namespace,
  project: BOT.id,
  runner: SMALL.uuid,
  system_id: SYSTEM_ID,
  limit_minutes: 10,
  stopped_minutes: 11,
  running: String(FIRST_JOB + 10_001n),
  pending: String(FIRST_JOB + 10_002n),
} as const;

/** The usage line of the build that was told to stop. */
export function stoppedBuild(unique_id: string, now: number): DemoBuild {
  const { running: job, stopped_minutes } = GARAGE;
  const seconds = stopped_minutes * 60;
  const parts = { unique_id, job, runner: SMALL, project: BOT, seconds, finishedAt: now };
  const text = line({ ...parts, status: "canceled" });
  return { job, runner_id: SMALL.id, seconds, finishedAt: now, line: text };
}

/** `count` builds that ended within the last hours, never before the month began, oldest first. */
export function demoBuilds(
  unique_id: string,
  now: number,
  count: number,
  firstJob = FIRST_JOB,
): DemoBuild[] {
  const monthStart = Date.parse(`${new Date(now).toISOString().slice(0, 7)}-01T00:00:00.000Z`);
  const earliest = Math.max(monthStart, now - MINUTES_BACK * 60_000);
  const places = [
    { runner: MEDIUM, project: WEB },
    { runner: SMALL, project: API },
    { runner: SMALL, project: TOOL },
    { runner: OWN, project: WEB },
    { runner: MEDIUM, project: APP },
  ] as const;
  return Array.from({ length: count }, (_, i) => {
    const { runner, project } = places[i % places.length] ?? places[0];
    const seconds =
      i === OUTAGE.position
        ? OUTAGE.seconds
        : 30.412 + ((i * 7919) % 900) + ((i * 31) % 500) / 1000;
    const finishedAt = Math.floor(earliest + ((now - earliest) * (i + 1)) / (count + 1));
    const job = String(firstJob + BigInt(i));
    const status: Status = i % 17 === 5 ? "failed" : "success";
    return {
      job,
      runner_id: runner.id,
      seconds,
      finishedAt,
      line: line({ unique_id, job, runner, project, seconds, finishedAt, status }),
    };
  });
}

/** Sorted last, after the files of a real host, whatever their dates. */
export function usageLogName(now: number): string {
  const stamp = new Date(now).toISOString().replace("T", "-").replaceAll(":", "-").replace("Z", "");
  return `usage-log-${stamp}.json`;
}

type Status = "success" | "failed" | "canceled";

/** Written as text: the job's number is beyond what JSON.stringify could write as a number. */
function line(build: {
  unique_id: string;
  job: string;
  runner: DemoRunner;
  project: DemoProject;
  seconds: number;
  finishedAt: number;
  status: Status;
}): string {
  const { unique_id, job, runner, project, seconds, finishedAt, status } = build;
  const path = `${NAMESPACE_NAMES[project.namespace]}/${project.name}`;
  const record = {
    uuid: `018f5a74-fbe9-758c-b036-${job.slice(-12).padStart(12, "0")}`,
    timestamp: new Date(finishedAt + 900).toISOString(),
    runner: {
      uuid: runner.uuid,
      id: "x3Fa9kQ2z",
      name: `runner-${runner.id}`,
      system_id: SYSTEM_ID,
      executor: "docker+machine",
    },
    job: {
      id: "@job",
      pipeline_id: 3_000_000_228,
      ref: "main",
      url: `https://${HOST}/${path}/-/jobs/${job}`,
      duration_seconds: seconds,
      status,
      failure_reason: status === "failed" ? "runner_system_failure" : "",
      started_at: new Date(finishedAt - seconds * 1000).toISOString(),
      finished_at: new Date(finishedAt).toISOString(),
      project: { id: Number(project.id), name: project.name, full_path: path },
      namespace: { id: Number(project.namespace) },
      root_namespace: { id: Number(project.namespace) },
      organization: { id: 1 },
      instance: { id: "6513270e-269e-4d37-b2a7-4de452e6b438", unique_id },
      user: { id: 7 },
      scoped_user: { id: 0 },
    },
    labels: {},
  };
  return JSON.stringify(record).replace('"@job"', job);
}

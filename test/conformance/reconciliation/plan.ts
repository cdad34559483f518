/**
 * A platform's list of jobs, made of builds that were reported: most of them as they were, some with a difference
 * that is written down here, and the rest jobs that no report belongs to. What becomes of a job follows from its
 * number and the seed.
 */
import { createHash } from "node:crypto";
import type { Setup } from "../../../src/command/setup.ts";
import { instantText } from "../../../src/core/unit.ts";
import type { Upload } from "../../../src/flow/reconcile/upload.ts";
import type { Build } from "./builds.ts";

/** `about` is the job, or what else it is about; the difference is in milliseconds. */
export interface Planted {
  host: string;
  code: string;
  about: string;
  difference: bigint;
  /** Found only when the grace of a day is over. */
  late?: true;
}

export interface ListedJob {
  host: string;
  job: Upload["jobs"][number];
}

export interface Platform {
  jobs: ListedJob[];
  planted: Planted[];
}

/** Of a thousand builds so many are listed otherwise than they were reported. */
const OTHERWISE = {
  within: 150,
  longer: 20,
  shorter: 20,
  running: 20,
  "other runner": 20,
  "other project": 20,
  "other namespace": 20,
  unlisted: 20,
};
/** Of a thousand jobs that nobody reported. */
const UNREPORTED = { missing: 60, awaited: 60, canceled: 480, running: 150, "nobody's": 250 };

const HOUR = 3_600_000;
/** Whose jobs are not kept. Above all numbers of projects, namespaces and runners, and below all of jobs. */
export const NOBODY = "990000";

/** @param count jobs in all. @param now epoch milliseconds, later than all builds by a day */
export function planPlatform(
  builds: readonly Build[],
  { runners }: Setup,
  { count, now, seed }: { count: number; now: number; seed: number },
): Platform {
  const platform: Platform = { jobs: [], planted: [] };
  const draw = (what: string): number =>
    createHash("sha256").update(`${seed} ${what}`).digest().readUInt32BE();
  // Where both a hosted and a customer's runner claim a job, the platform knows of the hosted one.
  const listed = new Map<string, Build>();
  for (const build of builds) {
    const key = `${build.host} ${build.job}`;
    if (build.tracking === "hosted" || !listed.has(key)) listed.set(key, build);
  }
  for (const build of listed.values()) {
    const drawn = draw(`${build.host} ${build.job}`);
    const others = runners.filter(({ host, id, tracking }) => {
      return host === build.host && id !== build.runner && tracking === "hosted";
    });
    const other = others[drawn % others.length]?.id ?? NOBODY;
    addReported(platform, build, kindOf(OTHERWISE, drawn), { drawn, other });
  }
  const hosted = runners.filter(({ tracking }) => tracking === "hosted");
  for (let number = 1; platform.jobs.length < count; number += 1) {
    const drawn = draw(String(number));
    const runner = hosted[drawn % hosted.length];
    if (runner === undefined) throw new Error("no hosted runner is set up");
    const ran = { host: runner.host, runner: runner.id, job: String(number), drawn, now };
    addUnreported(platform, kindOf(UNREPORTED, drawn), ran);
  }
  return platform;
}

function addReported(
  { jobs, planted }: Platform,
  build: Build,
  kind: keyof typeof OTHERWISE | undefined,
  { drawn, other }: { drawn: number; other: string },
): void {
  const { host, job, tracking } = build;
  const plant = (code: string, difference = 0n): void => {
    planted.push({ host, code, about: job, difference });
  };
  const list = (ms: bigint, change: object = {}): void => {
    const listed = listedAs({ ...build, ms });
    jobs.push({ host, job: { ...listed.job, ...change } });
  };
  const more = BigInt(5_001 + (drawn % 3_600_000));
  if (kind === "unlisted") {
    // Of a customer's own runner the platform's list need not be whole: nobody is billed for it.
    if (tracking === "hosted") plant("missing-job");
  } else if (kind === "within") {
    const less = build.ms < 5_000n ? build.ms : 5_000n;
    list(drawn % 2 === 0 ? build.ms + 5_000n : build.ms - less);
  } else if (kind === "longer") {
    list(build.ms + more);
    plant("duration", more);
  } else if (kind === "shorter") {
    // What took no longer than the tolerance cannot have taken less by more than that.
    const less = build.ms > 5_001n ? 5_001n : 0n;
    list(build.ms - less);
    if (less > 0n) plant("duration", -less);
  } else if (kind === "running") {
    const { duration: _, finished_at: __, ...begun } = listedAs(build).job;
    jobs.push({ host, job: { ...begun, status: "running" } });
  } else if (kind === "other runner") {
    list(build.ms, { runner_id: other });
    plant("foreign-runner");
  } else if (kind === "other project" || kind === "other namespace") {
    list(build.ms, { [kind === "other project" ? "project_id" : "namespace_id"]: NOBODY });
    plant("other-namespace");
  } else {
    list(build.ms);
  }
}

interface Ran {
  host: string;
  runner: string;
  job: string;
  drawn: number;
  now: number;
}

function addUnreported(
  { jobs, planted }: Platform,
  kind: keyof typeof UNREPORTED | undefined,
  { drawn, host, job, now, runner }: Ran,
): void {
  const ms = BigInt(1_000 + (drawn % 3_600_000));
  const hours = kind === "awaited" ? 1 + (drawn % 20) : 30 + (drawn % 1_000);
  const ended = now - hours * HOUR;
  const finished_at = instantText(ended);
  const begun = { job_id: job, runner_id: runner, project_id: "1", namespace_id: "1" };
  const started_at = instantText(ended - Number(ms));
  const ran = { ...begun, status: "success", started_at, finished_at, duration: seconds(ms) };
  if (kind === "missing" || kind === "awaited") {
    jobs.push({ host, job: ran });
    const late = kind === "awaited" && { late: true as const };
    planted.push({ host, code: "missing-report", about: job, difference: ms, ...late });
  } else if (kind === "canceled") {
    jobs.push({ host, job: { ...begun, status: "canceled", finished_at } });
  } else if (kind === "running") {
    jobs.push({ host, job: { ...begun, status: "running", started_at } });
  } else {
    jobs.push({ host, job: { ...ran, runner_id: NOBODY } });
  }
}

/** As a platform has it that agrees. */
export function listedAs({ host, ms, ...build }: Build): ListedJob {
  return {
    host,
    job: {
      job_id: build.job,
      runner_id: build.runner,
      project_id: build.project,
      namespace_id: build.namespace,
      status: "success",
      started_at: build.started,
      finished_at: build.finished,
      duration: seconds(ms),
    },
  };
}

function seconds(ms: bigint): string {
  return `${ms / 1_000n}.${String(ms % 1_000n).padStart(3, "0")}`;
}

/** Shares are of a thousand, and in their order. */
function kindOf<K extends string>(shares: Record<K, number>, drawn: number): K | undefined {
  let left = drawn % 1_000;
  for (const kind of Object.keys(shares) as K[]) {
    left -= shares[kind];
    if (left < 0) return kind;
  }
  return undefined;
}

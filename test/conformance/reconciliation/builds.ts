/** What runners measured, read from usage logs by the rules that are published with them. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { readLine } from "../../../src/agent/index.ts";
import type { Setup } from "../../../src/command/setup.ts";

export interface Build {
  host: string;
  /** As the platform numbers it. */
  runner: string;
  tracking: "hosted" | "self_managed";
  job: string;
  project: string;
  namespace: string;
  ms: bigint;
  started: string;
  finished: string;
}

/** Of each instance, tracking and job the first line: later ones are duplicates, or conflicts. */
export async function readBuilds(folder: string, setup: Setup): Promise<Build[]> {
  const builds = new Map<string, Build>();
  for (const name of (await readdir(folder)).filter((each) => each.startsWith("usage-log-"))) {
    for (const line of (await readFile(join(folder, name), "utf8")).split("\n")) {
      const build = buildOf(line, setup);
      const key = `${build?.host} ${build?.tracking} ${build?.job}`;
      if (build !== undefined && !builds.has(key)) builds.set(key, build);
    }
  }
  return [...builds.values()];
}

function buildOf(text: string, setup: Setup): Build | undefined {
  const line = readLine(Buffer.from(text));
  if (line.kind !== "record") return undefined;
  const { job, runner: ran, usage } = line.measurement;
  const instance = setup.instances.find(({ unique_id }) => unique_id === line.uniqueId);
  const runner = setup.runners.find(({ uuid }) => uuid === ran.uuid);
  if (instance === undefined || runner === undefined) return undefined;
  return {
    host: instance.host,
    runner: runner.id,
    tracking: runner.tracking,
    job: job.id,
    project: job.project_id,
    namespace: job.root_namespace_id,
    ms: BigInt(usage.duration_ms),
    started: usage.started_at,
    finished: usage.finished_at,
  };
}

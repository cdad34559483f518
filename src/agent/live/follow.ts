/** Heartbeats without a relay: of the jobs that gitlab-runner lists. */
import { join } from "node:path";
import type { Surroundings } from "../client.ts";
import { AgentError } from "../failure.ts";
import { readEnrolments } from "../state.ts";
import { Account } from "./account.ts";
import { Heart } from "./heart.ts";
import { readJobList } from "./job-list.ts";
import { ProjectMap } from "./projects.ts";
import { HEARTBEAT_MS, pulse } from "./pulse.ts";
import type { Running } from "./running.ts";

export interface FollowOptions {
  /** The agent's state folder, of which the caller has locked `live/`. */
  folder: string;
  /** gitlab-runner's `listen_address`. */
  runner: URL;
  /** Its folder of usage logs. */
  logs: string;
  surroundings: Surroundings;
  signal: AbortSignal;
  intervalMs?: number | undefined;
  onNotice: (sentence: string) => void;
}

const LIST_BYTES_MAX = 4 * 1024 * 1024;
const LIST_MS = 5_000;

/** Until the signal; how many beats were sent. @throws AgentError `damaged`, `unreadable`, `no-space` */
export async function follow(options: FollowOptions): Promise<{ beats: number }> {
  const { folder, logs, surroundings, signal, onNotice, intervalMs = HEARTBEAT_MS } = options;
  const projects = new ProjectMap(join(folder, "live"), logs);
  const heart = new Heart({ folder, surroundings, signal });
  const account = new Account(onNotice);
  let beats = 0;
  await pulse({ intervalMs, signal, sleep: surroundings.sleep }, async () => {
    projects.learn();
    const list = await listJobs(options);
    if (typeof list === "string") {
      account.sentences([list]);
      return;
    }
    const { running, unknown } = place(folder, projects, list);
    account.beat(await heart.beat(running, intervalMs), unknown);
    beats += 1;
  });
  return { beats };
}

/**
 * The list does not say which runner of the process has a job: where the host has one for the instance,
 * it is that; where there are several, a relay must say.
 */
function place(
  folder: string,
  projects: ProjectMap,
  { running, malformed }: ReturnType<typeof readJobList>,
): { running: Running[]; unknown: number } {
  const runners = new Map<string, Set<string>>();
  for (const { unique_id, runners: named } of readEnrolments(folder)) {
    runners.set(unique_id, new Set([...(runners.get(unique_id) ?? []), ...named]));
  }
  const placed = running.flatMap(({ project, id, elapsedMs }): Running[] => {
    const known = projects.get(project);
    const [uuid, ...others] = runners.get(known?.unique_id ?? "") ?? [];
    if (known === undefined || uuid === undefined || others.length > 0) return [];
    const { unique_id, system_id, project_id, root_namespace_id } = known;
    const job = { elapsed_ms: String(elapsedMs), id, project_id, root_namespace_id };
    return [{ uniqueId: unique_id, runner: { system_id, uuid }, job }];
  });
  return { running: placed, unknown: running.length - placed.length + malformed };
}

/** A sentence where the runner does not say. */
async function listJobs({
  runner,
  surroundings,
  signal,
}: FollowOptions): Promise<ReturnType<typeof readJobList> | string> {
  const address = new URL("/debug/jobs/list", runner);
  try {
    const response = await surroundings.fetch(address, {
      redirect: "error",
      signal: AbortSignal.any([signal, AbortSignal.timeout(LIST_MS)]),
    });
    if (!response.ok) return `${address} answers ${response.status}: no job is followed.`;
    return readJobList(await readText(response));
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof AgentError) return error.message;
    return `${address} does not answer: no job is followed. Set listen_address for gitlab-runner.`;
  }
}

async function readText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > LIST_BYTES_MAX) {
      throw new AgentError("protocol", `${response.url} lists jobs without end.`);
    }
  }
  return text + decoder.decode();
}

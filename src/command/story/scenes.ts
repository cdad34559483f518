/** The scenes of the story, each played on the running service and told in facts. */
import { createHash } from "node:crypto";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type Account,
  AgentState,
  Client,
  check,
  claim,
  importFolder,
  type Running,
  SURROUNDINGS,
  signHeartbeats,
} from "../../agent/index.ts";
import { type Api, call } from "../api.ts";
import { type DemoBuild, OUTAGE, usageLogName } from "../demo.ts";
import type { BuildFacts, Story } from "./facts.ts";
import type { ServiceProcess } from "./service-process.ts";

const MS_PER_MINUTE = 60_000;
/** Small, so that there is a middle of the import to be killed in. */
const BATCH = 20;

interface UsageAnswer {
  as_of: string;
  rows: {
    namespace: string;
    tracking: string;
    jobs: string;
    compute_minutes: string;
    billing_month: string;
  }[];
  totals: { compute_minutes: string };
}

/** The agent of the demo's runner host, with all it keeps in `folder`. */
export class Host {
  readonly #state: AgentState;
  readonly #client: Client;
  readonly #logs: string;

  private constructor(state: AgentState, client: Client, logs: string) {
    this.#state = state;
    this.#client = client;
    this.#logs = logs;
  }

  /** Claims the enrolment; the key is made here and never leaves the host. */
  static async enrol(
    folder: string,
    { server, log, token }: { server: string; log: string; token: string },
  ): Promise<Host> {
    const state = new AgentState(join(folder, "state"));
    const client = new Client({ server, surroundings: SURROUNDINGS });
    await claim(state, client, { log, token });
    const logs = join(folder, "usage-log");
    await mkdir(logs, { recursive: true });
    return new Host(state, client, logs);
  }

  async write(builds: readonly DemoBuild[], at: number): Promise<string> {
    const file = join(this.#logs, usageLogName(at));
    await writeFile(file, builds.map(({ line }) => `${line}\n`).join(""));
    return file;
  }

  /** The same lines under another name, as a careless copy would have them. */
  async copy(file: string, at: number): Promise<void> {
    await cp(file, join(this.#logs, usageLogName(at)));
  }

  async deliver(onAnswers: (done: number) => void = () => undefined) {
    return await importFolder({
      state: this.#state,
      folder: this.#logs,
      batch: BATCH,
      onProgress: ({ phase, done }) => phase === "sending" && onAnswers(done),
    });
  }

  /** What the service decides about one running job, told by the host's own key. */
  async heartbeat<Decision>(log: string, running: Running): Promise<readonly Decision[]> {
    const { kid } = this.#state.settings.enrolments.find((own) => own.log === log) ?? {};
    if (kid === undefined) throw new Error("story: a host without its enrolment");
    const [signed] = signHeartbeats(this.#state.key(kid), log, [running], this.#client.now());
    const post = { type: "application/jose", body: signed?.jws ?? "" };
    const { body } = await this.#client.request("v1/heartbeats", post);
    const { results } = body as { results: { code: string; decisions?: Decision[] }[] };
    const [{ code, decisions } = { code: "" }] = results;
    if (decisions === undefined) throw new Error(`story: a heartbeat was answered ${code}`);
    return decisions;
  }

  /** Holds the log to every receipt that it gave. */
  async holdToReceipts(log: string): Promise<Account> {
    return await check(this.#state, log, this.#client, {
      batch: BATCH,
      onProgress: () => undefined,
    });
  }

  close(): void {
    this.#state.close();
  }
}

/** Waits until the views have all that the log had when asked: `fresh` counts the tail as well. */
export async function usageOf(api: Api, log: string): Promise<UsageAnswer> {
  const path = `/v1/usage?log=${log}&group=namespace,tracking&fresh=true`;
  return await call<UsageAnswer>(api, "GET", path);
}

interface ShownUsage {
  index: string;
  leaf: string;
  /** base64 of the entry's bytes. */
  entry: string;
  /** C2SP tlog-proof; absent while no checkpoint covers the entry. */
  proof?: string;
  kid: string;
  jws: string;
  report: { counter: string; job: { project_id: string; root_namespace_id: string } };
  rating: {
    machine_type: string;
    duration_ms: string;
    factor: string;
    compute_ms: string;
    compute_minutes: string;
  };
  net_compute_ms: string;
}

/** The hosted usage of one build. @throws ApiError when it is not on the log */
export async function usageOfBuild(api: Api, log: string, { job }: DemoBuild): Promise<ShownUsage> {
  const path = `/v1/jobs/${log}/${job}?tracking=hosted`;
  const { usages } = await call<{ usages: ShownUsage[] }>(api, "GET", path);
  const [usage] = usages;
  if (usage === undefined) throw new Error("story: a build without usage");
  return usage;
}

export async function buildScene(api: Api, log: string, build: DemoBuild): Promise<BuildFacts> {
  const { entry, index, jws, kid, leaf, rating, report } = await usageOfBuild(api, log, build);
  const { prev } = JSON.parse(Buffer.from(entry, "base64").toString("utf8")) as { prev: string };
  const { compute_minutes, compute_ms, duration_ms, factor, machine_type } = rating;
  return {
    line: build.line,
    kid,
    counter: report.counter,
    digest: createHash("sha256").update(jws).digest("base64"),
    index,
    leaf,
    prev,
    machine_type,
    duration_ms,
    factor,
    compute_ms,
    compute_minutes,
  };
}

/** What a customer is given for one build. @throws Error while no checkpoint covers it */
export async function proofOf(api: Api, log: string, build: DemoBuild): Promise<string> {
  const { proof } = await usageOfBuild(api, log, build);
  if (proof === undefined) throw new Error("story: a sealed build without its proof");
  return proof;
}

/** What a platform that measures from the outside would have billed for the same build. */
export async function outageScene(
  api: Api,
  log: string,
  builds: readonly DemoBuild[],
): Promise<Story["outage"]> {
  const build = builds[OUTAGE.position];
  if (build === undefined) throw new Error("story: no build for the outage");
  const { rating } = await usageOfBuild(api, log, build);
  const ran = Number(rating.duration_ms) / MS_PER_MINUTE;
  const unanswered = OUTAGE.unansweredMs / MS_PER_MINUTE;
  return {
    job: build.job,
    unanswered_minutes: String(unanswered),
    platform_minutes: String(ran + unanswered),
    minutes: String(ran),
  };
}

/**
 * Kills the service in the middle of a delivery, starts it again at the same address, lets the agent
 * finish, and delivers the same lines once more.
 */
export async function crashScene(
  stage: {
    api: Api;
    log: string;
    host: Host;
    service: ServiceProcess;
    restart: () => Promise<ServiceProcess>;
  },
  builds: readonly DemoBuild[],
  now: number,
): Promise<{ facts: Story["crash"]; service: ServiceProcess }> {
  const { api, log, host, service, restart } = stage;
  const file = await host.write(builds, now);
  let restarted: Promise<ServiceProcess> | undefined;
  let answered = 0;
  const summary = await host.deliver((done) => {
    answered = Math.max(answered, restarted === undefined ? done : answered);
    if (done >= builds.length / 2) restarted ??= service.kill().then(restart);
  });
  if (restarted === undefined) throw new Error("story: the service outlived the delivery");
  const successor = await restarted;
  const before = (await usageOf(api, log)).totals.compute_minutes;
  await host.copy(file, now + 1_000);
  const again = await host.deliver();
  const after = (await usageOf(api, log)).totals.compute_minutes;
  const facts = {
    reports: String(builds.length),
    answered_before: String(answered),
    accepted: String(summary.total.accepted),
    repeated: String(builds.length),
    duplicates: String(again.total.duplicate),
    before,
    after,
  };
  return { facts, service: successor };
}

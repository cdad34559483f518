/**
 * The published usage against 10,000 jobs of a platform, with differences of each kind that are known: each is
 * found and named, and none besides. Reports come by the agent, jobs by uploads, breaks from the API.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AgentState } from "../../src/agent/index.ts";
import { type Api, call } from "../../src/command/api.ts";
import { layFoundation } from "../../src/command/foundation.ts";
import { startOn } from "../../src/command/service.ts";
import { applySetup, type InstanceSetUp, Setup } from "../../src/command/setup.ts";
import { readConfig } from "../../src/config.ts";
import { BREAK_CODES } from "../../src/core/evidence.ts";
import { instantText } from "../../src/core/unit.ts";
import { isLastPage, type Matching, matchDue } from "../../src/flow/reconcile/match.ts";
import { notice } from "../../src/flow/reconcile/notice.ts";
import type { ShownBreak } from "../../src/flow/reconcile/show.ts";
import { UPLOADED_MAX } from "../../src/flow/reconcile/upload.ts";
import { type Watching, watch } from "../../src/flow/reconcile/watch.ts";
import { type WatchingKeys, watchKeys } from "../../src/flow/reconcile/watch-keys.ts";
import { connect } from "../../src/store/connect.ts";
import { startWatching } from "../../src/store/reconcile-marks.ts";
import { openLog } from "../../src/telemetry.ts";
import { deliver, readPublished } from "./delivery.ts";
import { readBuilds } from "./reconciliation/builds.ts";
import {
  type ListedJob,
  listedAs,
  NOBODY,
  type Planted,
  planPlatform,
} from "./reconciliation/plan.ts";
import { beStrange, CROWDED } from "./reconciliation/strange.ts";
import { type Vector, vector } from "./vector.ts";

/** What a customers' portal counts is not of the published usage. */
const CODES = BREAK_CODES.filter((code) => code !== "portal-difference");
const JOBS = 10_000;
const SEED = 5;
const HOUR = 3_600_000;

/** @throws Error when the folder is not there: what could not be looked at must not pass */
export async function* checkReconciliation(folder: string): AsyncGenerator<Vector, void> {
  const data = await mkdtemp(join(tmpdir(), "minutebook-conformance-"));
  const scene = await openScene(data);
  try {
    yield* play(scene, folder);
  } finally {
    await scene.close();
    await rm(data, { recursive: true, force: true });
  }
}

async function* play(scene: Scene, folder: string): AsyncGenerator<Vector, void> {
  const { api, clock, state } = scene;
  const setup = Setup.parse(await readPublished(folder, "setup.json"));
  const instances = await applySetup(api, setup);
  const [first] = instances;
  if (first === undefined) throw new Error("no instance is set up");
  await scene.deliver(instances, folder);
  const strange = await beStrange({ api, log: first.log, state, ...clock }, first.host);
  const platform = planPlatform(await readBuilds(folder, setup), setup, {
    count: JOBS - strange.builds.length,
    now: clock.now(),
    seed: SEED,
  });
  const jobs = [...platform.jobs, ...strange.builds.map(listedAs)];
  const planted = [...platform.planted, ...strange.planted];
  const codes = new Set(planted.map(({ code }) => code));
  const unplanted = CODES.filter((code) => !codes.has(code));
  yield vector("a difference of each kind is planted", unplanted.length === 0, unplanted.join());
  yield await listed(api, instances, { jobs, covered: hostedOf(setup) });

  await scene.look(instances);
  const early = planted.filter(({ late }) => late === undefined);
  yield* compared("at once", await breaksOf(api, instances), early);
  // In two steps, so that who speaks again in between is not silent for as long as who never does.
  clock.ahead = 23 * HOUR;
  await scene.deliver(instances, await mkdtemp(join(scene.data, "nothing-")));
  await strange.again();
  await scene.look(instances);
  clock.ahead = 25 * HOUR;
  await scene.look(instances);
  yield* compared("a day later", await breaksOf(api, instances), planted);
}

/** A service whose clock can be put ahead, and what it does beside requests, done at once. */
interface Scene {
  data: string;
  api: Api;
  clock: { ahead: number; now(): number };
  /** Of hosts that are no agent's. */
  state: AgentState;
  deliver(instances: readonly InstanceSetUp[], folder: string): Promise<void>;
  /** Until there is nothing left to look at. */
  look(instances: readonly InstanceSetUp[]): Promise<void>;
  close(): Promise<void>;
}

async function openScene(data: string): Promise<Scene> {
  const clock = { ahead: 0, now: () => Date.now() + clock.ahead };
  const config = configured();
  const foundation = await layFoundation(config, data, () => undefined);
  const sql = connect(foundation.writerUrl, { max: 2 });
  const service = await startOn(foundation, { config, log: openLog("warn"), clock });
  const state = new AgentState(join(data, "strange"));
  const { anomalies, bounds } = config.reconciliation;
  const looking = {
    ...{ sql, clock, bounds, anomalies, appender: service.appender, graceMs: bounds.grace_ms },
    random: (bytes: number) => new Uint8Array(randomBytes(bytes)),
  };
  const token = await service.token(["operator", "provisioner", "finance", "platform"]);
  return {
    ...{ data, clock, state },
    api: { server: service.url, token },
    deliver: async (instances, folder) => {
      // By the machine's own clock, as the answers' dates are: what was signed a day ago is as welcome.
      await deliver(service, instances, { folder, state: join(data, "agent") });
    },
    look: async (instances) => {
      for (const { log } of instances) await look(looking, log);
    },
    close: async () => {
      state.close();
      await sql.end();
      await service.stop();
    },
  };
}

function configured() {
  const config = { ...readConfig({}), logLevel: "warn" as const };
  const { reconciliation } = config;
  const capacity = new Map([[CROWDED.runner, CROWDED.jobs]]);
  const anomalies = { ...reconciliation.anomalies, capacity };
  return { ...config, reconciliation: { ...reconciliation, anomalies } };
}

/** What the service does every few seconds. */
async function look(looking: Matching & Watching & WatchingKeys, log: string): Promise<void> {
  await startWatching(looking.sql);
  for (;;) {
    const { entries } = await notice(looking, log);
    const matched = await matchDue(looking, log);
    if (entries === 0n && isLastPage(matched)) break;
  }
  while ((await watch(looking, log)).entries > 0n);
  await watchKeys(looking, log);
}

function hostedOf({ runners }: Setup): { host: string; runner: string }[] {
  const hosted = runners.filter(({ tracking }) => tracking === "hosted");
  return hosted.map(({ host, id }) => ({ host, runner: id }));
}

/** Uploads all, and then says that it was all. */
async function listed(
  api: Api,
  instances: readonly InstanceSetUp[],
  { covered, jobs }: { jobs: readonly ListedJob[]; covered: ReturnType<typeof hostedOf> },
): Promise<Vector> {
  const to = instantText(Date.now() - HOUR);
  let kept = 0;
  for (const { host, log } of instances) {
    const own = jobs.filter((job) => job.host === host).map(({ job }) => job);
    const runners = covered.filter((runner) => runner.host === host);
    const path = `/v1/logs/${log}/platform_jobs`;
    for (let at = 0; at < own.length; at += UPLOADED_MAX) {
      const page = { jobs: own.slice(at, at + UPLOADED_MAX) };
      kept += Number((await call<{ kept: string }>(api, "POST", path, page)).kept);
    }
    const said = runners.map(({ runner }) => ({ runner_id: runner, to }));
    await call(api, "POST", path, { jobs: [], covered: said });
  }
  const theirs = jobs.filter(({ job }) => job.runner_id !== NOBODY).length;
  const name = `${jobs.length} jobs of the platform, ${kept} of the logs' runners`;
  return vector(name, jobs.length === JOBS && kept === theirs, `${theirs} are of their runners`);
}

/** Also those that have ended: what was opened without a cause is invented, whatever became of it. */
async function breaksOf(api: Api, instances: readonly InstanceSetUp[]): Promise<Found[]> {
  const found: Found[] = [];
  for (const { host, log } of instances) {
    let before = "";
    for (;;) {
      const path = `/v1/logs/${log}/breaks?state=all${before}`;
      const page = await call<{ breaks: ShownBreak[]; next?: string }>(api, "GET", path);
      found.push(...page.breaks.map((each) => ({ host, ...each })));
      if (page.next === undefined) break;
      before = `&before=${page.next}`;
    }
  }
  return found;
}

type Found = ShownBreak & { host: string };

/** Code by code, each with what it is about and by how much. */
function* compared(
  when: string,
  found: readonly Found[],
  planted: readonly Planted[],
): Generator<Vector> {
  for (const code of CODES) {
    const expected = linesOf(planted.filter((each) => each.code === code).map(lineOfPlanted));
    const shown = linesOf(found.filter((each) => each.code === code).map(lineOfFound));
    const missed = expected.filter((line) => !shown.includes(line));
    const invented = shown.filter((line) => !expected.includes(line));
    const detail = `${missed.length} missed, ${missed[0]}; ${invented.length} invented, ${invented[0]}`;
    const equal = expected.join("\n") === shown.join("\n");
    yield vector(`${when}: ${code} ${shown.length}`, equal, detail);
  }
}

const linesOf = (lines: string[]): string[] => lines.sort();

function lineOfPlanted({ about, difference, host }: Planted): string {
  return `${host} ${about} ${difference}`;
}

function lineOfFound({ code, detail, difference_ms, host, job_id, ...about }: Found): string {
  const { kid, namespace_id, runner_id } = about;
  // A source's count is about no job, host, runner or namespace: its detail says what it counted.
  const named = code === "source-count" ? detail : job_id || kid || namespace_id || runner_id;
  return `${host} ${named} ${difference_ms}`;
}

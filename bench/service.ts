/** The service as its own process, with a log and a claimed key: seals and folds run as they do. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { type Api, call } from "../src/command/api.ts";
import { dataFolder } from "../src/command/folder.ts";
import { localToken } from "../src/command/issuer.ts";
import { applySetup } from "../src/command/setup.ts";
import { readSigningKey } from "../src/custody.ts";
import { startRedis } from "../src/embedded/redis.ts";
import { Fleet, RUNNER } from "./fleet.ts";
import type { Run } from "./sizes.ts";

const COMMAND = new URL("../src/main.js", import.meta.url).pathname;
const ROLES = ["operator", "provisioner", "finance", "platform"] as const;
const POLL_MS = 50;
const HOST = "gitlab.bench";
const LONG_AGO = "2020-01-01T00:00:00.000Z";

export interface BenchService {
  pid: number;
  api: Api;
  log: string;
  /** The Redis that it keeps live usage in; undefined: there is no program for one. */
  redis: string | undefined;
  reports: URL;
  fleet: Fleet;
  /** The claim that brought the fleet's key. */
  claim: string;
  /** Until all that was appended is sealed and folded: nothing of it may run into the next figure. */
  settled(): Promise<void>;
}

export function openService({ folder, say, defer }: Run): () => Promise<BenchService> {
  let started: Promise<BenchService> | undefined;
  return () => {
    started ??= start(join(folder, "service"), { say, defer });
    return started;
  };
}

async function start(
  data: string,
  { say, defer }: Pick<Run, "say" | "defer">,
): Promise<BenchService> {
  const redis = await startRedis({ folder: `${data}-redis`, log: say });
  if (redis !== undefined) defer(redis.stop);
  const child = spawn(process.execPath, [COMMAND, "serve", "--data", data, "--json"], {
    env: { ...process.env, LOG_LEVEL: "warn", ...(redis && { REDIS_URL: redis.url }) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  defer(() => ended(child));
  const server = await address(child);
  const key = readSigningKey(dataFolder(data).keys.issuer);
  const grants = ROLES.map((role) => ({ role, logs: "*", namespaces: "*" }) as const);
  const api = { server, token: await localToken(key, grants) };
  const [made] = await applySetup(api, SETUP);
  const [token] = made?.tokens ?? [];
  if (made === undefined || token === undefined) throw new Error("bench: no log was made");
  const fleet = new Fleet(made.log);
  const claim = fleet.claim(token);
  await call(api, "POST", "/v1/enrolments/claim", { token, claim });
  return {
    pid: child.pid ?? 0,
    api,
    log: made.log,
    redis: redis?.url,
    reports: new URL("/v1/reports", server),
    fleet,
    claim,
    settled: () => settled(api, made.log),
  };
}

/** @throws Error when the service ends before it says where it listens */
async function address({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error("bench: no output");
  for await (const line of createInterface(stdout)) return JSON.parse(line).url;
  throw new Error("bench: the service could not start");
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const exit = once(child, "exit");
  child.kill("SIGTERM");
  await exit;
}

async function settled(api: Api, log: string): Promise<void> {
  for (;;) {
    const { logs } = await call<{ logs: { log: string; size: string }[] }>(api, "GET", "/v1/logs");
    const usage = await call<{ as_of: string }>(api, "GET", `/v1/usage?log=${log}`);
    if (logs.some((one) => one.log === log && one.size === usage.as_of)) return;
    await delay(POLL_MS);
  }
}

const SETUP = {
  instances: [
    {
      host: HOST,
      unique_id: "5f0c8a1e-6f5e-4a75-9a53-0d3c7f0b7c11",
      platform: "dotcom" as const,
      billing_from: LONG_AGO,
    },
  ],
  runners: [
    {
      ...RUNNER,
      host: HOST,
      tracking: "hosted" as const,
      runner_type: "instance" as const,
    },
  ],
  namespaces: [],
  projects: [],
  rate_cards: [
    {
      platform: "dotcom",
      tracking: "hosted" as const,
      effective_from: LONG_AGO,
      runner_factors: { [RUNNER.machine_type]: "2" },
      project_factors: {},
      not_billable: [],
    },
  ],
};

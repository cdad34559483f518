/**
 * A folder of usage logs with the exact rollups that they must yield, taken the real way: set up over
 * HTTP, imported by the agent, sealed, folded, and read from the views; then both verifiers.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { type Api, call } from "../../src/command/api.ts";
import { startService } from "../../src/command/service.ts";
import { applySetup, type InstanceSetUp, Setup } from "../../src/command/setup.ts";
import { readConfig } from "../../src/config.ts";
import { openLog } from "../../src/telemetry.ts";
import { deliver, readPublished } from "./delivery.ts";
import { type Vector, vector } from "./vector.ts";

const Row = z.record(z.string(), z.union([z.string(), z.number()]));
const Expected = z.object({
  counts: z.record(z.string(), z.number()),
  namespace_monthly: z.array(Row),
  project_monthly: z.array(Row),
  hosted_runner_monthly: z.array(Row),
});
type Expected = z.infer<typeof Expected>;
type Rollup = Exclude<keyof Expected, "counts">;

/** What of an answer's row each rollup is keyed by; the names are those of expected.json. */
const ROLLUPS: Record<Rollup, { group: string; only?: string; keys: Record<string, string> }> = {
  namespace_monthly: {
    group: "tracking,namespace",
    keys: { tracking: "tracking", root_namespace_id: "namespace" },
  },
  project_monthly: {
    group: "tracking,namespace,project",
    keys: { tracking: "tracking", root_namespace_id: "namespace", project_id: "project" },
  },
  hosted_runner_monthly: {
    group: "runner,namespace,project",
    only: "hosted",
    keys: { runner_id: "runner", root_namespace_id: "namespace", project_id: "project" },
  },
};

/** @throws Error when the folder is not there: what could not be looked at must not pass */
export async function* checkUsage(folder: string): AsyncGenerator<Vector, void> {
  const setup = Setup.parse(await readPublished(folder, "setup.json"));
  const expected = Expected.parse(await readPublished(folder, "expected.json"));
  const data = await mkdtemp(join(tmpdir(), "minutebook-conformance-"));
  const config = { ...readConfig({}), logLevel: "warn" as const };
  const service = await startService({ config, data, log: openLog("warn") });
  try {
    const token = await service.token(["operator", "provisioner", "finance", "auditor"]);
    const api = { server: service.url, token };
    const instances = await applySetup(api, setup);
    const delivery = { folder, state: join(data, "agent") };
    const { malformed, total, unrouted } = await deliver(service, instances, delivery);
    const { signed: _, ...outcomes } = total;
    yield* counts({ ...outcomes, malformed, unrouted }, expected.counts);
    const answers: string[] = [];
    for (const { log } of instances) {
      await sealedAndFolded(api, log);
      answers.push(await keepUsage(api, log, data));
    }
    for (const name of Object.keys(ROLLUPS) as Rollup[]) {
      yield* rollup(name, await rowsOf(api, instances, name), expected[name]);
    }
    const vkeys = instances.flatMap(({ vkey }) => ["--vkey", vkey]);
    const usage = answers.flatMap((file) => ["--usage", file]);
    const verify = ["verify", join(data, "archive"), "--live"];
    yield await command("audit/cli.js", [...verify, ...vkeys, ...usage]);
    yield await command("src/main.js", ["check", "--data", data, ...vkeys]);
  } finally {
    await service.stop();
    await rm(data, { recursive: true, force: true });
  }
}

function* counts(
  found: Readonly<Record<string, number>>,
  expected: Readonly<Record<string, number>>,
): Generator<Vector> {
  for (const [name, count] of Object.entries(found)) {
    const wanted = expected[name] ?? 0;
    yield vector(`counts: ${name} ${count}`, count === wanted, `expected ${wanted}`);
  }
}

async function rowsOf(
  api: Api,
  instances: readonly InstanceSetUp[],
  name: Rollup,
): Promise<Record<string, string>[]> {
  const { group, only, keys } = ROLLUPS[name];
  const rows: Record<string, string>[] = [];
  for (const { host, log } of instances) {
    const filter = only === undefined ? "" : `&tracking=${only}`;
    const path = `/v1/usage?log=${log}&group=${group}${filter}`;
    const answer = await call<{ rows: Record<string, string>[] }>(api, "GET", path);
    for (const row of answer.rows) {
      const { billing_month = "", compute_minutes = "", compute_ms = "", duration_ms = "" } = row;
      const named = Object.entries(keys).map(([ours, theirs]) => [ours, row[theirs] ?? ""]);
      rows.push({
        host,
        billing_month,
        ...Object.fromEntries(named),
        jobs: row["jobs"] ?? "",
        duration_ms,
        compute_ms,
        compute_minutes,
      });
    }
  }
  return rows;
}

/** Every expected row is there to the last digit, and no other. */
function* rollup(
  name: string,
  found: readonly Record<string, string>[],
  expected: readonly Record<string, string | number>[],
): Generator<Vector> {
  const lines = (rows: readonly Record<string, string | number>[]): string[] =>
    rows.map((row) =>
      JSON.stringify(
        Object.entries(row)
          .map(([k, v]) => [k, String(v)])
          .sort(),
      ),
    );
  const left = new Set(lines(found));
  let missing = 0;
  let first = "";
  for (const line of lines(expected)) {
    if (left.delete(line)) continue;
    missing += 1;
    if (first === "") first = line;
  }
  const [surplus = ""] = left;
  const equal = missing === 0 && left.size === 0 && found.length === expected.length;
  const detail = `${missing} missing, first ${first}; ${left.size} surplus, first ${surplus}`;
  yield vector(`${name}: ${expected.length} rows`, equal, detail);
}

async function command(program: string, args: readonly string[]): Promise<Vector> {
  const path = fileURLToPath(new URL(`../../${program}`, import.meta.url));
  const child = spawn(process.execPath, [path, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString("utf8");
    });
  }
  const [status] = await once(child, "close");
  return vector(`${program} ${args[0]}: exit ${status}`, status === 0, output.slice(-2_000));
}

/** Until a checkpoint covers the whole log and the views have it. */
async function sealedAndFolded(api: Api, log: string): Promise<void> {
  for (;;) {
    const { logs } = await call<{ logs: { log: string; size: string }[] }>(api, "GET", "/v1/logs");
    const { as_of } = await call<{ as_of: string }>(api, "GET", `/v1/usage?log=${log}`);
    if (logs.some((shown) => shown.log === log && shown.size === as_of)) return;
    await delay(100);
  }
}

async function keepUsage(api: Api, log: string, folder: string): Promise<string> {
  const group = "tracking,namespace,project,runner,machine_type,usage_month";
  const answer = await call<unknown>(api, "GET", `/v1/usage?log=${log}&group=${group}`);
  const file = join(folder, `usage-${log}.json`);
  await writeFile(file, JSON.stringify(answer));
  return file;
}

/**
 * `npm start`: starts every part on data dated around now, tells what they do in a page of text, and
 * keeps serving. Nothing in it is staged: the service is a process that is killed, the reports go
 * through the agent and HTTP, and the two verifiers run as commands.
 */
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { Command } from "commander";
import { findPostgres } from "../embedded.ts";
import { VERSION } from "../version.ts";
import { type Api, call } from "./api.ts";
import { demoBuilds, demoSetup, FIRST_JOB, stoppedBuild } from "./demo.ts";
import { dataFolder, migrationsFolder } from "./folder.ts";
import { example } from "./option.ts";
import { applySetup, type InstanceSetUp } from "./setup.ts";
import { controlScene } from "./story/control.ts";
import type { MonthRow, Story } from "./story/facts.ts";
import { page } from "./story/page.ts";
import { quotaScene } from "./story/quota.ts";
import { buildScene, crashScene, Host, outageScene, proofOf, usageOf } from "./story/scenes.ts";
import { runCommand, type ServiceProcess, startService } from "./story/service-process.ts";
import { tamperArchive, tamperDatabase, urlOf } from "./story/tamper.ts";
import { auditVerdict, checkVerdict, proofVerdict } from "./story/verdict.ts";

interface DemoOptions {
  data: string;
  port: string;
  once?: true;
  json?: true;
}

const FIRST_BUILDS = 60;
const LATER_BUILDS = 200;
const POLL_MS = 100;
const INTERRUPTED = 130;

export function demoCommand(): Command {
  return new Command("demo")
    .description("start everything on demo data, tell the story, keep serving")
    .option("--data <folder>", "where database, archive and keys are kept", "data")
    .option("--port <number>", "port to serve at; 0 for any free one", "0")
    .option("--once", "end with status 0 after the story")
    .option("--json", "print the story's facts as one JSON document")
    .addHelpText("after", example("demo --once --json", "0 told, 2 something did not start"))
    .action(tell);
}

async function tell(options: DemoOptions): Promise<void> {
  const started = Date.now();
  const data = resolve(options.data);
  await mkdir(data, { recursive: true });
  status("starting PostgreSQL and the service");
  let service = await startService(data, Number(options.port));
  const port = Number(new URL(service.url).port);
  const interrupted = new Promise<undefined>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.once(signal, () => resolve(undefined));
    }
  });
  // What replaces the killed service is the one to stop, also when the story is cut short there.
  const restart = async (): Promise<ServiceProcess> => {
    service = await startService(data, port);
    return service;
  };
  try {
    const told = await Promise.race([play({ data, started, restart }, service), interrupted]);
    if (told === undefined) {
      // The agent in the story would try for ever to reach a service that is no more.
      await service.stop();
      process.exit(INTERRUPTED);
    }
    status("");
    const story = { ...told.story, seconds: ((Date.now() - started) / 1000).toFixed(1) };
    const text = options.json
      ? `${JSON.stringify(story, undefined, 2)}\n`
      : page(story, !options.once);
    process.stdout.write(text);
    if (!options.once) await Promise.race([interrupted, service.ended]);
  } finally {
    await service.stop();
  }
}

/** What is being waited for, on a terminal only, where the next line takes its place. */
function status(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

async function play(
  stage: { data: string; started: number; restart: () => Promise<ServiceProcess> },
  first: ServiceProcess,
): Promise<{ story: Omit<Story, "seconds">; service: ServiceProcess }> {
  const { data, started } = stage;
  status("setting up an instance");
  const tokens = await mintTokens(data);
  const api: Api = { server: first.url, token: tokens.values["operator"] ?? "" };
  // An instance of its own for every telling: what earlier ones left on their logs stays as it is.
  const unique_id = randomUUID();
  const setup = demoSetup(unique_id, started);
  const [instance] = await applySetup(api, setup);
  const [token] = instance?.tokens ?? [];
  if (instance === undefined || token === undefined) throw new Error("story: nothing was set up");
  const { log } = instance;
  const host = await Host.enrol(join(data, "hosts", log), { server: first.url, log, token });
  try {
    status("delivering builds");
    const builds = demoBuilds(unique_id, started, FIRST_BUILDS);
    await host.write(builds, started);
    await host.deliver();
    const [firstBuild] = builds;
    if (firstBuild === undefined) throw new Error("story: no builds");
    const build = await buildScene(api, log, firstBuild);
    const usage = await usageOf(api, log);
    const outage = await outageScene(api, log, builds);
    status("asking whether jobs may run");
    const stopped = stoppedBuild(unique_id, started);
    const quota = await quotaScene(api, { unique_id, log }, host, { stopped, now: started + 1 });
    const later = demoBuilds(unique_id, started, LATER_BUILDS, FIRST_JOB + BigInt(FIRST_BUILDS));
    status("killing the service");
    const crash = await crashScene(
      { ...stage, api, log, host, service: first },
      later,
      started + 2,
    );
    status("closing last month");
    const [{ billing_from = "", platform = "" } = {}] = setup.instances;
    const control = await controlScene({
      ...{ api, data, log, unique_id, billing_from, host },
      now: started + 3,
    });
    status("verifying, and verifying what was changed");
    const proofs = await trustNobody(data, api, instance, BigInt(build.index));
    const account = await host.holdToReceipts(log);
    const proof = await proofScene(data, await proofOf(api, log, firstBuild), instance.vkey);
    const story = {
      version: VERSION,
      instance: { unique_id, platform, log },
      build,
      month: monthOf(usage),
      outage,
      quota,
      crash: crash.facts,
      control,
      receipts: promisesOf(account),
      tampered: proofs.tampered,
      verified: { ...proofs.verified, proof: proof.verdict },
      serving: {
        url: first.url,
        data: near(data),
        vkey_file: near(join(data, "log.vkey")),
        proof_file: near(proof.file),
        token_files: tokens.files,
      },
    };
    return { story, service: crash.service };
  } finally {
    host.close();
  }
}

function promisesOf({ promises, size }: Awaited<ReturnType<Host["holdToReceipts"]>>) {
  return { proven: String(promises.proven), broken: String(promises.broken), size };
}

function monthOf({ as_of, rows }: Awaited<ReturnType<typeof usageOf>>): Story["month"] {
  const billing_month = rows[0]?.billing_month ?? "";
  const kept: MonthRow[] = rows.map(({ namespace, tracking, jobs, compute_minutes }) => {
    return { namespace, tracking, jobs, compute_minutes };
  });
  return { billing_month, as_of, rows: kept };
}

/** The story's own token does all; those that people are given do one thing each. */
async function mintTokens(data: string) {
  const mint = async (...roles: string[]): Promise<string> => {
    const flags = roles.flatMap((role) => ["--role", role]);
    const { status, output } = await runCommand("minutebook", ["token", "--data", data, ...flags]);
    if (status !== 0) throw new Error("story: no token was made");
    return output.trim();
  };
  const values: Record<string, string> = {
    operator: await mint("operator", "provisioner", "finance", "platform"),
    auditor: await mint("auditor"),
  };
  const files: Record<string, string> = {};
  for (const [name, value] of Object.entries(values)) {
    const file = join(data, `${name}.token`);
    await writeFile(file, `${value}\n`, { mode: 0o600 });
    files[name] = near(file);
  }
  return { values, files };
}

/** Both verifiers over what is served, then over copies in which one figure was changed. */
async function trustNobody(
  data: string,
  api: Api,
  { log, vkey }: InstanceSetUp,
  index: bigint,
): Promise<{ verified: { archive: string; database: string }; tampered: Story["tampered"] }> {
  const vkeyFile = join(data, "log.vkey");
  await writeFile(vkeyFile, `${vkey}\n`);
  const size = await sealedSize(api, log);
  const { archive } = dataFolder(data);
  const postgres = await findPostgres(dataFolder(data).postgres);
  if (postgres === undefined) throw new Error("story: the database is not running");
  const copies = await mkdtemp(join(tmpdir(), "minutebook-story-"));
  const name = "minutebook_story_copy";
  try {
    await tamperArchive({ archive, copy: copies, log, index, size });
    const drop = await tamperDatabase({
      superuserUrl: postgres.superuser,
      migrations: migrationsFolder(),
      name,
      log,
      index,
    });
    const [good, bad, sound, altered] = [
      await auditOf(archive, log, vkeyFile),
      await auditOf(copies, log, vkeyFile),
      await checkOf(postgres.reader, vkeyFile),
      await checkOf(urlOf(postgres.reader, name), vkeyFile),
    ];
    await drop();
    return {
      verified: { archive: good, database: sound },
      tampered: { index: String(index), archive: bad, database: altered },
    };
  } finally {
    await rm(copies, { recursive: true, force: true });
  }
}

/** What a customer does with one build's proof. */
async function proofScene(
  data: string,
  proof: string,
  vkey: string,
): Promise<{ file: string; verdict: string }> {
  const file = join(data, "build.tlog-proof");
  await writeFile(file, proof);
  const args = ["check-proof", file, "--vkey", vkey, "--json"];
  return { file, verdict: proofVerdict(await runCommand("minutebook-audit", args)) };
}

/** Waits until a checkpoint covers every entry, and the views have folded them. */
async function sealedSize(api: Api, log: string): Promise<bigint> {
  for (;;) {
    const { logs } = await call<{ logs: { log: string; size: string; sealed: string }[] }>(
      api,
      "GET",
      "/v1/logs",
    );
    const shown = logs.find((other) => other.log === log);
    const { as_of } = await call<{ as_of: string }>(api, "GET", `/v1/usage?log=${log}`);
    if (shown !== undefined && shown.size === shown.sealed && as_of === shown.size) {
      return BigInt(shown.size);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

async function auditOf(archive: string, log: string, vkeyFile: string): Promise<string> {
  const args = ["verify", archive, log, "--vkey", vkeyFile, "--live", "--json"];
  return auditVerdict(await runCommand("minutebook-audit", args));
}

async function checkOf(url: string, vkeyFile: string): Promise<string> {
  const reader = { READER_DATABASE_URL: url };
  const args = ["check", "--vkey", vkeyFile, "--json"];
  return checkVerdict(await runCommand("minutebook", args, reader));
}

/** As one would type it from here. */
const near = (path: string): string => relative(process.cwd(), path) || ".";

/**
 * Sets up instances from one description: logs, rate cards, limits, project classes, enrolments.
 * The demo, the conformance run and the benchmarks all start from it.
 */
import type { Command } from "commander";
import { z } from "zod";
import { type Api, call } from "./api.ts";
import { apiOf, example, readJsonFile, type ServerOptions, serverCommand } from "./option.ts";
import { print } from "./print.ts";
import { showProgress } from "./progress.ts";

const Tracking = z.enum(["hosted", "self_managed"]);

/** The shape of `setup.json`; members beyond these (names, paths) are for people and ignored. */
export const Setup = z.object({
  instances: z.array(
    z.object({
      host: z.string(),
      unique_id: z.string(),
      platform: z.enum(["dotcom", "dedicated", "self_managed"]),
      billing_from: z.string(),
    }),
  ),
  runners: z.array(
    z.object({
      host: z.string(),
      uuid: z.string(),
      id: z.string(),
      tracking: Tracking,
      runner_type: z.enum(["instance", "group", "project"]),
      machine_type: z.string(),
      namespaces: z.array(z.string()).optional(),
    }),
  ),
  namespaces: z.array(z.object({ host: z.string(), id: z.string(), monthly_minutes: z.string() })),
  projects: z.array(z.object({ host: z.string(), id: z.string(), project_class: z.string() })),
  rate_cards: z.array(
    z.object({
      platform: z.string(),
      tracking: Tracking,
      effective_from: z.string(),
      runner_factors: z.record(z.string(), z.string()),
      project_factors: z.record(z.string(), z.string()),
      not_billable: z.array(z.string()),
    }),
  ),
});
export type Setup = z.infer<typeof Setup>;

export interface InstanceSetUp {
  host: string;
  log: string;
  vkey: string;
  /** One-time tokens, one for each enrolment that an agent is to claim. */
  tokens: string[];
}

export function setupCommand(): Command {
  return serverCommand("setup", "create and fill the logs that one file describes")
    .argument("<file>", "instances, runners, namespaces, projects and rate cards, in JSON")
    .addHelpText("after", example("setup setup.json"))
    .action(async (file: string, options: ServerOptions) => {
      const setup = readJsonFile(file, Setup);
      const progress = showProgress("entries");
      const steps = setupSteps(setup);
      let done = 0;
      const onStep = () => {
        done += 1;
        progress.update("setup", done, steps);
      };
      const instances = await applySetup(apiOf(options), setup, onStep).finally(progress.stop);
      const lines = instances.flatMap(({ host, log, vkey, tokens }) => [
        `${host}: log ${log}`,
        `  vkey ${vkey}`,
        ...tokens.map((token) => `  token ${token}`),
      ]);
      print(options, { instances }, lines);
    });
}

const SOURCE = "setup";

/** Instants in set-up files may lack milliseconds; on the log they have exactly three digits. */
const exact = (instant: string): string => new Date(instant).toISOString();

/**
 * @param api a token with the roles operator, provisioner, finance and platform
 * @param onStep called once for each thing written, for progress
 * @throws ApiError as the service refuses
 */
export async function applySetup(
  api: Api,
  setup: Setup,
  onStep: () => void = () => undefined,
): Promise<InstanceSetUp[]> {
  const done: InstanceSetUp[] = [];
  for (const instance of setup.instances) {
    const { log, vkey } = await call<{ log: string; vkey: string }>(api, "POST", "/v1/logs", {
      unique_id: instance.unique_id,
      platform: instance.platform,
      billing_from: exact(instance.billing_from),
      // What follows is one person's; a `mode` decided by two takes it from there.
      control: "single",
    });
    onStep();
    const from = exact(instance.billing_from);
    await writeRates(api, setup, instance, log, onStep);
    await writeClasses(api, setup, instance.host, log, from, onStep);
    await writeLimits(api, setup, instance.host, log, from, onStep);
    const tokens = await enrol(api, setup, instance.host, log, from);
    done.push({ host: instance.host, log, vkey, tokens });
  }
  return done;
}

export function setupSteps(setup: Setup): number {
  const cards = setup.instances.flatMap(({ platform }) => cardsOf(setup, platform)).length;
  return setup.instances.length + cards + setup.namespaces.length + classed(setup).length;
}

const cardsOf = (setup: Setup, platform: string) =>
  setup.rate_cards.filter((card) => card.platform === platform || card.platform === "*");

/** A project without a class is `standard` already. */
const classed = (setup: Setup) => setup.projects.filter((p) => p.project_class !== "standard");

async function writeRates(
  api: Api,
  setup: Setup,
  instance: Setup["instances"][number],
  log: string,
  onStep: () => void,
): Promise<void> {
  for (const { platform: _, ...card } of cardsOf(setup, instance.platform)) {
    const effective_from = exact(card.effective_from);
    await call(api, "POST", `/v1/logs/${log}/rate_cards`, {
      ...card,
      effective_from,
      source: SOURCE,
    });
    onStep();
  }
}

async function writeClasses(
  api: Api,
  setup: Setup,
  host: string,
  log: string,
  effective_from: string,
  onStep: () => void,
): Promise<void> {
  for (const project of classed(setup).filter((p) => p.host === host)) {
    await call(api, "POST", `/v1/logs/${log}/project_classes`, {
      project_id: project.id,
      class: project.project_class,
      effective_from,
      source: SOURCE,
    });
    onStep();
  }
}

async function writeLimits(
  api: Api,
  setup: Setup,
  host: string,
  log: string,
  effective_from: string,
  onStep: () => void,
): Promise<void> {
  for (const namespace of setup.namespaces.filter((n) => n.host === host)) {
    await call(api, "PUT", `/v1/quotas/${log}/${namespace.id}`, {
      monthly_minutes: namespace.monthly_minutes,
      beyond: "stop",
      effective_from,
      source: SOURCE,
      source_version: "1",
    });
    onStep();
  }
}

/** Runners bound to the same namespaces share an enrolment, and so a key: they run on one host. */
async function enrol(
  api: Api,
  setup: Setup,
  host: string,
  log: string,
  effective_from: string,
): Promise<string[]> {
  const groups = new Map<string, Setup["runners"]>();
  for (const runner of setup.runners.filter((r) => r.host === host)) {
    const key = JSON.stringify(runner.namespaces ?? []);
    groups.set(key, [...(groups.get(key) ?? []), runner]);
  }
  const tokens: string[] = [];
  for (const [namespaces, runners] of groups) {
    const { token } = await call<{ token: string }>(api, "POST", "/v1/enrolments", {
      log,
      namespaces: JSON.parse(namespaces),
      runners: runners.map(({ uuid, id, tracking, runner_type, machine_type }) => ({
        uuid,
        runner_id: id,
        tracking,
        runner_type,
        machine_type,
        effective_from,
      })),
    });
    tokens.push(token);
  }
  return tokens;
}

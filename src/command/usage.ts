/** `minutebook usage`: what was used, as a table, JSON or CSV. */
import { type Command, Option } from "commander";
import { Tracking } from "../core/unit.ts";
import { USAGE_GROUPS, type UsageAnswer, type UsageFigures } from "../flow/usage/usage.ts";
import { ask, call } from "./api.ts";
import { CommandError } from "./failure.ts";
import { apiOf, example, month, type ServerOptions, serverCommand } from "./option.ts";
import { print, table } from "./print.ts";

interface UsageOptions extends ServerOptions {
  log: string;
  month?: string;
  from?: string;
  to?: string;
  group?: string;
  namespace?: string;
  project?: string;
  runner?: string;
  machineType?: string;
  tracking?: string;
  fresh?: true;
  csv?: true;
}

export function usageCommand(): Command {
  return serverCommand("usage", "what was used, by billing month")
    .requiredOption("--log <id>", "the log")
    .option("--month <month>", "one billing month", month)
    .option("--from <month>", "the first billing month", month)
    .option("--to <month>", "the billing month after the last", month)
    .option("--group <names>", `with commas: ${USAGE_GROUPS.join(", ")}`)
    .option("--namespace <id>", "only this root namespace")
    .option("--project <id>", "only this project")
    .option("--runner <id>", "only this runner")
    .option("--machine-type <name>", "only this machine type")
    .addOption(new Option("--tracking <tracking>", "only this one").choices(Tracking.options))
    .option("--fresh", "count entries too that no checkpoint covers yet")
    .addOption(new Option("--csv", "print CSV").conflicts("json"))
    .addHelpText(
      "after",
      example("usage --log 0a1b… --month 2026-11 --group namespace,tracking --csv > usage.csv"),
    )
    .action(async (options: UsageOptions) => {
      const path = `/v1/usage?${searchOf(options)}`;
      const api = apiOf(options);
      if (options.csv) {
        process.stdout.write(await ask(api, "GET", path, { accept: "text/csv" }));
        return;
      }
      const answer = await call<UsageAnswer>(api, "GET", path);
      print(options, answer, lines(answer));
    });
}

function searchOf(options: UsageOptions): URLSearchParams {
  if (options.month !== undefined && (options.from ?? options.to) !== undefined) {
    throw new CommandError("invalid-usage", "--month, or --from and --to");
  }
  const { log, month, from, to, group, namespace, project, runner, tracking } = options;
  const { machineType: machine_type } = options;
  const fresh = options.fresh ? "true" : undefined;
  const all = { log, month, from, to, group, namespace, project, runner, machine_type, tracking };
  const given = Object.entries({ ...all, fresh }).filter(([, value]) => value !== undefined);
  return new URLSearchParams(given as [string, string][]);
}

const SHOWN = [
  "jobs",
  "duration_ms",
  "adjustment_compute_ms",
  "compute_ms",
  "billable_compute_ms",
  "compute_minutes",
] as const satisfies readonly (keyof UsageFigures)[];

function lines(answer: UsageAnswer): string[] {
  const { group, rows, totals, as_of, sealed, refreshed_at } = answer;
  const cells = rows.map((row) => [...group, ...SHOWN].map((name) => row[name] ?? ""));
  const sum = [
    ...group.map((_, i) => (i === 0 ? "total" : "")),
    ...SHOWN.map((name) => totals[name]),
  ];
  const age = refreshed_at === undefined ? "" : `, folded at ${refreshed_at}`;
  return [
    ...table([...group, ...SHOWN], [...cells, sum]),
    `As of ${as_of} entries${sealed ? ", sealed" : ", not all of it sealed"}${age}.`,
  ];
}

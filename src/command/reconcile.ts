/** `minutebook reconcile`: what is known of a day, and what differs. */
import type { Command } from "commander";
import type { Completeness, RunnerCompleteness } from "../flow/reconcile/completeness.ts";
import { call } from "./api.ts";
import { apiOf, example, group, type ServerOptions, serverCommand } from "./option.ts";
import { print, table } from "./print.ts";

const REPORT = "reconcile report --log 0a1b… --day 2026-11-20";

export function reconcileCommand(): Command {
  return group("reconcile", "what platforms saw against what was reported", [
    reportCommand(),
  ]).addHelpText("after", example(REPORT));
}

interface ReportOptions extends ServerOptions {
  log: string;
  day: string;
}

function reportCommand(): Command {
  return serverCommand("report", "how complete a day is, runner by runner")
    .requiredOption("--log <id>", "the log")
    .requiredOption("--day <day>", "a UTC day, as 2026-11-20")
    .addHelpText("after", example(REPORT))
    .action(async (options: ReportOptions) => {
      const [log, day] = [options.log, options.day].map(encodeURIComponent);
      const path = `/v1/logs/${log}/completeness?day=${day}`;
      const report = await call<Completeness>(apiOf(options), "GET", path);
      print(options, report, lines(report));
    });
}

const HEADER = [
  "runner",
  "tracking",
  "platform",
  "reported",
  "matched",
  "awaiting",
  "missing",
  "never started",
  "breaks open",
  "covered through",
  "attested through",
];

function lines({
  acknowledged,
  as_of,
  day,
  looked_at,
  made_since,
  runners,
}: Completeness): string[] {
  return [
    `Jobs that were pulled are all known if they were made since ${made_since}; of older ones, those that were seen or reported.`,
    `Jobs that ended on ${day}, as of ${as_of} entries, of which ${looked_at} were held against the platform's.`,
    ...table(HEADER, runners.map(cells)),
    ...acknowledged.map(({ consumer, differing, up_to }) => {
      const differs =
        differing.length === 0 ? "nothing differs" : `differs: ${differing.join(", ")}`;
      return `${consumer} has acknowledged ${up_to} entries; ${differs}.`;
    }),
  ];
}

function cells(runner: RunnerCompleteness): string[] {
  const open = runner.breaks.filter((each) => each.open !== "0");
  return [
    runner.runner_id,
    runner.tracking,
    runner.platform_jobs,
    runner.reported,
    runner.matched,
    runner.awaiting,
    runner.missing,
    runner.never_started,
    open.map(({ code, open }) => `${open} ${code}`).join(", ") || "none",
    runner.covered_through ?? "nothing",
    runner.attested_through ?? "nothing",
  ];
}

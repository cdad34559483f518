/** `minutebook month`: months of a log, and how they are closed. */
import type { Command } from "commander";
import type { MonthDetail, ShownMonth } from "../flow/month/show.ts";
import { ask, call } from "./api.ts";
import { apiOf, example, group, month, type ServerOptions, serverCommand } from "./option.ts";
import { print, table } from "./print.ts";

const SHOW = "month show 2026-10 --log 0a1b…";
const CLOSE = "month close 2026-10 --log 0a1b…";

export function monthCommand(): Command {
  return group("month", "months of a log: cut off, closed, stated", [
    listCommand(),
    showCommand(),
    stepCommand("close", "cut a month off: what comes later is the next month's"),
    stepCommand("withdraw", "take the last cut-off back, as long as its month is not closed"),
    stepCommand("finish", "close a month that is cut off, for ever (a service does it by itself)"),
    statementCommand(),
  ]).addHelpText("after", example(CLOSE));
}

interface LogOptions extends ServerOptions {
  log: string;
}

function listCommand(): Command {
  return serverCommand("list", "months of a log and where they stand")
    .requiredOption("--log <id>", "the log")
    .addHelpText("after", example("month list --log 0a1b…"))
    .action(async (options: LogOptions) => {
      const path = pathOf(options);
      const listed = await call<{ months: ShownMonth[] }>(apiOf(options), "GET", path);
      const rows = listed.months.map((each) => [
        each.month.slice(0, 7),
        each.state.replace("_", " "),
        each.closing ?? "",
        each.closed ?? "",
      ]);
      print(options, listed, table(["month", "state", "cut-off", "closed by"], rows));
    });
}

function showCommand(): Command {
  return monthly("show", "one month: what was used, and what its closing waits for")
    .addHelpText("after", example(SHOW))
    .action(async (name: string, options: LogOptions) => {
      const shown = await call<MonthDetail>(apiOf(options), "GET", pathOf(options, name));
      const { preconditions, state, usage } = shown;
      const rows = preconditions.map(({ code, evidence, missing }) => [
        code,
        missing === undefined ? "holds" : "missing",
        missing ??
          Object.entries(evidence)
            .map(([of, text]) => `${of} ${text || "none"}`)
            .join(", "),
      ]);
      const { compute_minutes, jobs } = usage.totals;
      print(options, shown, [
        `${name.slice(0, 7)} is ${state.replace("_", " ")}: ${jobs} builds, ${compute_minutes} compute minutes as of ${usage.as_of} entries.`,
        ...table(["precondition", "", "seen by"], rows),
      ]);
    });
}

function stepCommand(step: "close" | "withdraw" | "finish", description: string): Command {
  return monthly(step, description)
    .addHelpText("after", example(`month ${step} 2026-10 --log 0a1b…`))
    .action(async (name: string, options: LogOptions) => {
      const path = `${pathOf(options, name)}/${step}`;
      const written = await call<{ index: string }>(apiOf(options), "POST", path);
      print(options, written, [`Entry ${written.index}: ${DONE[step]} ${name.slice(0, 7)}.`]);
    });
}

const DONE = { close: "cut off", withdraw: "cut-off withdrawn of", finish: "closed" } as const;

interface StatementOptions extends LogOptions {
  note?: true;
}

function statementCommand(): Command {
  return monthly("statement", "the statement of a closed month, to the byte")
    .option("--note", "its hash under the log's keys (C2SP signed-note) in its place")
    .addHelpText("after", example("month statement 2026-10 --log 0a1b… >2026-10.json"))
    .action(async (name: string, options: StatementOptions) => {
      const path = `${pathOf(options, name)}/statement${options.note ? ".note" : ""}`;
      process.stdout.write(await ask(apiOf(options), "GET", path, { accept: "*/*" }));
    });
}

function monthly(name: string, description: string): Command {
  return serverCommand(name, description)
    .argument("<month>", "as 2026-10", month)
    .requiredOption("--log <id>", "the log");
}

function pathOf({ log }: LogOptions, ...rest: string[]): string {
  return ["/v1/months", log, ...rest]
    .map((part, at) => (at ? encodeURIComponent(part) : part))
    .join("/");
}

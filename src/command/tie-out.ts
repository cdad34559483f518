/** `minutebook tieout`: one month, wherever its figures stand, and where they are not the same. */
import type { Command } from "commander";
import type { TieOut } from "../flow/tie-out/tie-out.ts";
import { call } from "./api.ts";
import { apiOf, example, month, type ServerOptions, serverCommand } from "./option.ts";
import { print, table } from "./print.ts";

interface TieOutOptions extends ServerOptions {
  log: string;
  month: string;
}

const STATUSES =
  "0 all the same, 1 a difference, or refused, 2 could not be asked, 3 the same as far as there is anything yet";
/** Asked, and the answer is not complete: whoever asks again later may hear another. */
const NOT_YET = 3;

export function tieOutCommand(): Command {
  return serverCommand(
    "tieout",
    "whether a month is the same in the log and all that was made of it",
  )
    .requiredOption("--log <id>", "the log")
    .requiredOption("--month <month>", "the billing month, as 2026-10", month)
    .addHelpText("after", example("tieout --log 0a1b… --month 2026-10", STATUSES))
    .action(async (options: TieOutOptions) => {
      const path = `/v1/months/${encodeURIComponent(options.log)}/${options.month}/tieout`;
      const tied = await call<TieOut>(apiOf(options), "GET", path);
      print(options, tied, linesOf(tied));
      if (tied.differences.length > 0) process.exitCode = 1;
      else if (tied.not_yet.length > 0) process.exitCode = NOT_YET;
    });
}

function linesOf({ as_of, differences, figures, month: name, not_yet, state }: TieOut): string[] {
  const rows = figures.map(({ figure, legs: [first, ...others] }) => {
    const same = others.filter(({ value }) => value === first?.value).map(({ leg }) => leg);
    return [figure, first?.value ?? "", [first?.leg, ...same].join(", ")];
  });
  const found = differences.map(({ against, expected, figure, leg, value }) => {
    return [figure, leg, value, against, expected];
  });
  return [
    `${name.slice(0, 7)} is ${state.replace("_", " ")}, as of ${as_of} entries.`,
    ...table(["figure", "", "stands in"], rows),
    ...(found.length > 0 ? table(["difference in", "of", "is", "and in", "is"], found) : []),
    ...(not_yet.length > 0 ? [`Not there yet: ${not_yet.join(", ")}.`] : []),
    verdictOf(differences.length, not_yet.length),
  ];
}

function verdictOf(differences: number, missing: number): string {
  if (differences > 0) return `NOT THE SAME: ${differences} differences`;
  return missing > 0 ? "SAME, as far as there is anything yet" : "SAME, to the last digit";
}

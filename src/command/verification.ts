/** `minutebook verification`: what was verified of a log, day by day. */
import { type Command, InvalidArgumentError } from "commander";
import { DayText } from "../core/body.ts";
import { listVerifications, type Verification } from "../flow/evidence/verification.ts";
import { withDatabase } from "./database.ts";
import { type DataOptions, dataCommand, example, group } from "./option.ts";
import { print, table } from "./print.ts";

const LIST = "verification list --log 0a1b… --from 2026-11-01 --data data";

export function verificationCommand(): Command {
  return group("verification", "what was verified of a log, day by day", [
    listCommand(),
  ]).addHelpText("after", example(LIST));
}

interface ListOptions extends DataOptions {
  log: string;
  from: string;
  to: string;
}

function listCommand(): Command {
  return dataCommand(
    "list",
    "the days on which a log was verified, and those on which it was not",
    "READER_DATABASE_URL",
  )
    .requiredOption("--log <id>", "the log")
    .option("--from <day>", "the first UTC day", day, "0000-01-01")
    .option("--to <day>", "the last UTC day", day, "9999-12-31")
    .addHelpText(
      "after",
      example(LIST, "0 all passed, 1 one failed, 2 on one nothing was verified, or on none"),
    )
    .action(async (options: ListOptions) => {
      const days = await withDatabase("reader", options, async (sql) => {
        const listed: (Verification & { index: string })[] = [];
        for await (const each of listVerifications(sql, options.log, options)) listed.push(each);
        return listed;
      });
      const rows = days.map((each) => [
        each.day,
        each.outcome,
        `${each.from} … ${each.to}`,
        each.findings,
        each.version,
        each.index,
      ]);
      const header = ["day", "outcome", "entries", "findings", "version", "said by"];
      print(options, { log: options.log, days }, table(header, rows));
      process.exitCode = statusOf(days);
    });
}

function statusOf(days: readonly Verification[]): 0 | 1 | 2 {
  if (days.some(({ outcome }) => outcome === "failed")) return 1;
  return days.length === 0 || days.some(({ outcome }) => outcome === "nothing") ? 2 : 0;
}

function day(text: string): string {
  if (DayText.safeParse(text).success) return text;
  throw new InvalidArgumentError("Expected a day such as 2026-11-28.");
}

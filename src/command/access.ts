/** `minutebook access`: the access log held against its digests, and the end of somebody's access. */
import { type Command, InvalidArgumentError } from "commander";
import { DayText } from "../core/body.ts";
import { checkDay, type DayCheck } from "../flow/access/digest.ts";
import { call } from "./api.ts";
import { withDatabase } from "./database.ts";
import {
  apiOf,
  type DataOptions,
  dataCommand,
  example,
  group,
  type ServerOptions,
  serverCommand,
} from "./option.ts";
import { print } from "./print.ts";

const CALL = "access check --log 0a1b… --day 2026-11-28 --data data";

export function accessCommand(): Command {
  return group("access", "who read and changed what, and who may no longer", [
    checkCommand(),
    endCommand("bar", "end somebody's access, on one log or on all", "barred"),
    endCommand("unbar", "take just such a bar back", "no longer barred"),
  ]).addHelpText("after", example(CALL));
}

interface EndOptions extends ServerOptions {
  log?: string;
  reason: string;
}

function endCommand(name: "bar" | "unbar", description: string, now: string): Command {
  return serverCommand(name, description)
    .argument("<id>", "of the principal, as `GET /v1/principals` lists them")
    .option("--log <id>", "of this log alone (default: of all)")
    .requiredOption("--reason <text>", "why; it is kept")
    .addHelpText("after", example(`access ${name} p_0a1B… --reason "has left"`))
    .action(async (id: string, options: EndOptions) => {
      const { log, reason } = options;
      const path = `/v1/principals/${encodeURIComponent(id)}/${name}`;
      const asked = { reason, ...(log !== undefined && { log }) };
      const ended = await call<{ id: string; log?: string }>(apiOf(options), "POST", path, asked);
      print(options, ended, [
        `${id}: ${now}, on ${log === undefined ? "all logs" : `log ${log}`}.`,
      ]);
    });
}

interface CheckOptions extends DataOptions {
  log: string;
  day: string;
}

function checkCommand(): Command {
  return dataCommand(
    "check",
    "work the digest of a day's rows out again, and compare it with the day's entry",
    "READER_DATABASE_URL",
  )
    .requiredOption("--log <id>", "the log")
    .requiredOption("--day <day>", "a UTC day, as 2026-11-28", day)
    .addHelpText(
      "after",
      example(CALL, "0 it agrees, 1 it does not, 2 could not look, or the day is not over yet"),
    )
    .action(async (options: CheckOptions) => {
      const { log, day } = options;
      const checked = await withDatabase("reader", options, (sql) => checkDay(sql, log, day));
      print(options, checked, [lineOf(checked)]);
      process.exitCode = statusOf(checked);
    });
}

function statusOf({ agrees, closed }: DayCheck): 0 | 1 | 2 {
  if (!agrees) return 1;
  return closed ? 0 : 2;
}

function lineOf({ agrees, closed, coded, day, found, missing, stated }: DayCheck): string {
  const lost = missing === "0" ? "" : `, and ${missing} missing there or next to it`;
  const rows = `${day}: ${found.lines} rows${lost}, digest ${found.lines_sha256}`;
  if (stated === undefined) {
    if (!closed && agrees) return `OPEN: ${rows}; the day is not closed yet.`;
    return agrees ? `AGREES: ${day} has no rows, and no entry.` : `DIFFERS: ${rows}; no entry yet.`;
  }
  const { index, lines, lines_sha256 } = stated;
  const said = coded ? "says" : "says of all but their codes";
  if (agrees) return `AGREES: ${rows}, as entry ${index} ${said}.`;
  return `DIFFERS: ${rows}; entry ${index} says ${lines} rows, digest ${lines_sha256}.`;
}

function day(text: string): string {
  if (DayText.safeParse(text).success) return text;
  throw new InvalidArgumentError("Expected a day such as 2026-11-28.");
}

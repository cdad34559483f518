/** `minutebook credit-run`: one correction of many charges, looked at, asked for, applied, taken back. */
import { readFileSync } from "node:fs";
import { type Command, Option } from "commander";
import { parseSignedComputeMs, signedComputeMinutes } from "../core/charge.ts";
import { CreditForm } from "../core/credit-run.ts";
import type { ShownCreditRun, ShownPreview } from "../flow/credit/show.ts";
import type { Uploaded } from "../flow/credit/upload.ts";
import { type Api, call } from "./api.ts";
import { CommandError } from "./failure.ts";
import {
  apiOf,
  collect,
  example,
  group,
  instant,
  type ServerOptions,
  serverCommand,
} from "./option.ts";
import { print, table } from "./print.ts";
import { showProgress } from "./progress.ts";

const EXAMPLE = "credit-run preview --log 0a1b… --form zero_rate --from 2026-02-03 --to 2026-02-04";

export function creditRunCommand(): Command {
  return group("credit-run", "corrections of many charges at once", [
    previewCommand(),
    askCommand(),
    listCommand(),
    applyCommand(),
    reverseCommand(),
  ]).addHelpText("after", example(EXAMPLE));
}

interface LogOptions extends ServerOptions {
  log: string;
}

interface PreviewOptions extends LogOptions {
  form: CreditForm;
  share?: string;
  minutes?: string;
  from?: string;
  to?: string;
  runner?: string[];
  machineType?: string[];
  failureReason?: string[];
  project?: string[];
  namespaces?: string;
  asOf?: string;
}

function logCommand(name: string, description: string): Command {
  return serverCommand(name, description).requiredOption("--log <id>", "the log");
}

function previewCommand(): Command {
  return logCommand("preview", "what a run would take back or give; nothing is written")
    .addOption(
      new Option("--form <form>", "what it does").choices(CreditForm.options).makeOptionMandatory(),
    )
    .option("--share <share>", "of what was charged: 0.5, 1/3; of a pack it may be more than 1")
    .option("--minutes <n>", "of each namespace's pack")
    .option("--from <instant>", "builds that finished then or later", instant)
    .option("--to <instant>", "builds that finished before", instant)
    .option("--runner <id>", "only this runner; may come again", collect)
    .option("--machine-type <name>", "only this machine type; may come again", collect)
    .option("--failure-reason <code>", "only these failures; may come again", collect)
    .option("--project <id>", "only this project; may come again", collect)
    .option("--namespaces <file>", "only these root namespaces: a number in each line")
    .option("--as-of <size>", "as so many entries have it (default: all)")
    .addHelpText("after", example(EXAMPLE, "0 done, 1 refused or no lines, 2 could not be asked"))
    .action(async (options: PreviewOptions) => {
      const api = apiOf(options);
      const path = `/v1/logs/${options.log}/credit_previews`;
      const asked = { ...(await namespacesOf(api, options)), ...selectionOf(options) };
      const shown = await call<ShownPreview>(api, "POST", path, asked);
      print(options, shown, previewLines(shown));
      // A run of no line is refused, so that whoever goes on by the status does not ask for one.
      if (shown.lines === "0") process.exitCode = 1;
    });
}

function selectionOf({ form, share, minutes, from, to, asOf, ...lists }: PreviewOptions): object {
  return {
    ...{ form, share, minutes, from, to },
    as_of: asOf,
    runners: lists.runner,
    machine_types: lists.machineType,
    failure_reasons: lists.failureReason,
    projects: lists.project,
  };
}

async function namespacesOf(api: Api, { log, namespaces: file }: PreviewOptions): Promise<object> {
  if (file === undefined) return {};
  const path = `/v1/logs/${log}/namespace_lists`;
  const namespaces = readLines(file);
  const { namespaces_sha256 } = await call<Uploaded>(api, "POST", path, { namespaces });
  return { namespaces_sha256 };
}

function readLines(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new CommandError("unreadable-file", file, { cause: error });
  }
}

function previewLines(shown: ShownPreview): string[] {
  const { by_machine_type, lines, namespaces, preview, top } = shown;
  if (lines === "0") return ["0 lines: nothing that is left of any charge is in this selection."];
  return [
    ...table(
      ["machine type", "builds", "minutes"],
      by_machine_type.map((row) => [row.machine_type, row.lines, minutesOf(row.amount)]),
    ),
    ...table(
      ["namespace", "minutes"],
      top.map((row) => [row.namespace_id, minutesOf(row.amount)]),
    ),
    `${lines} lines for ${namespaces} namespaces, ${minutesOf(shown.total)} minutes in all.`,
    `Preview ${preview}, digest ${shown.lines_sha256}.`,
  ];
}

function minutesOf(amount: string): string {
  return signedComputeMinutes(parseSignedComputeMs(amount));
}

interface CauseOptions extends LogOptions {
  reason: string;
  ticket: string;
}

type Asked = { index: string } & ({ state: "done" } | { state: "open"; expires_at: string });

function causeCommand(name: string, description: string): Command {
  return logCommand(name, description)
    .requiredOption("--reason <code>", "of the operator's own list: a-z, 0-9 and _")
    .requiredOption("--ticket <text>", "where the case is written down");
}

function askCommand(): Command {
  return causeCommand("ask", "ask for the run of a preview")
    .argument("<preview>", "as `credit-run preview` named it")
    .addHelpText(
      "after",
      example("credit-run ask 4f1c… --log 0a1b… --reason outage --ticket INC-7"),
    )
    .action(async (preview: string, options: CauseOptions) => {
      const { log, reason, ticket } = options;
      const path = `/v1/logs/${log}/credit_runs`;
      const asked = await call<Asked>(apiOf(options), "POST", path, { preview, reason, ticket });
      print(options, asked, askedLines(asked, log));
    });
}

function reverseCommand(): Command {
  return causeCommand("reverse", "ask for the run that takes another one back as a whole")
    .argument("<run>", "index of the run")
    .addHelpText(
      "after",
      example("credit-run reverse 812 --log 0a1b… --reason error --ticket INC-8"),
    )
    .action(async (run: string, options: CauseOptions) => {
      const { log, reason, ticket } = options;
      const path = `/v1/logs/${log}/credit_runs/${run}/reverse`;
      const asked = await call<Asked>(apiOf(options), "POST", path, { reason, ticket });
      print(options, asked, askedLines(asked, log));
    });
}

function askedLines(asked: Asked, log: string): string[] {
  if (asked.state === "open") {
    return [
      `Proposal ${asked.index}, to be decided about until ${asked.expires_at}.`,
      `Another person: minutebook approve ${log} ${asked.index}`,
    ];
  }
  return [`Run ${asked.index}: minutebook credit-run apply ${asked.index} --log ${log}`];
}

function listCommand(): Command {
  return logCommand("list", "runs and how far they have come, newest first")
    .addHelpText("after", example("credit-run list --log 0a1b…"))
    .action(async (options: LogOptions) => {
      const path = `/v1/logs/${options.log}/credit_runs`;
      const page = await call<{ credit_runs: ShownCreditRun[] }>(apiOf(options), "GET", path);
      const header = ["run", "at", "form", "written", "lines", "minutes", "ticket", "reversed by"];
      const rows = page.credit_runs.map((run) => {
        const { at, form, index, lines, reversed, ticket, total, written } = run;
        return [index, at, form, written, lines, minutesOf(total), ticket, reversed];
      });
      print(options, page, table(header, rows));
    });
}

interface Progressed {
  lines: string;
  written: string;
}

function applyCommand(): Command {
  return logCommand("apply", "write a run's lines, or go on where that ended")
    .argument("<run>", "index of the run")
    .addHelpText("after", example("credit-run apply 812 --log 0a1b…"))
    .action(async (run: string, options: LogOptions) => {
      const path = `/v1/logs/${options.log}/credit_runs/${run}/apply`;
      const progress = showProgress("lines");
      try {
        const end = await applied(() => call<Progressed>(apiOf(options), "POST", path), progress);
        print(options, end, [`All ${end.lines} lines of run ${run} stand.`]);
      } finally {
        progress.stop();
      }
    });
}

/** Each request writes for some seconds; what was written stays. */
async function applied(
  ask: () => Promise<Progressed>,
  progress: ReturnType<typeof showProgress>,
): Promise<Progressed> {
  for (;;) {
    const part = await ask();
    progress.update("applied", Number(part.written), Number(part.lines));
    if (part.written === part.lines) return part;
  }
}

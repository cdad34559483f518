/** `minutebook proposals`: what was asked for, and what became of it. */
import { type Command, Option } from "commander";
import { PROPOSAL_STATES } from "../flow/control/show.ts";
import { call } from "./api.ts";
import { apiOf, example, group, type ServerOptions, serverCommand } from "./option.ts";
import { print, table } from "./print.ts";

const EXAMPLE = "proposals list --log 0a1b… --state open";

export function proposalsCommand(): Command {
  return group("proposals", "what persons asked for, and what became of it", [
    listCommand(),
    endCommand("refuse", "refusal", "say no to a proposal, as an approver"),
    endCommand("withdraw", "withdrawal", "take back a proposal of your own"),
  ]).addHelpText("after", example(EXAMPLE));
}

interface ListOptions extends ServerOptions {
  log: string;
  state?: string;
  before?: string;
}

interface Page {
  proposals: Record<"index" | "at" | "action" | "state" | "reason" | "ticket" | "by", string>[];
  next?: string;
}

function listCommand(): Command {
  return serverCommand("list", "proposals of a log, newest first")
    .requiredOption("--log <id>", "the log")
    .addOption(new Option("--state <state>", "only those").choices(PROPOSAL_STATES))
    .option("--before <index>", "those before it: the next page")
    .addHelpText("after", example(EXAMPLE))
    .action(async (options: ListOptions) => {
      const { log, state, before } = options;
      const query = new URLSearchParams({
        log,
        ...(state && { state }),
        ...(before && { before }),
      });
      const page = await call<Page>(apiOf(options), "GET", `/v1/proposals?${query}`);
      const header = ["index", "at", "action", "state", "reason", "ticket", "by"] as const;
      const rows = page.proposals.map((each) => header.map((name) => each[name]));
      const more = page.next === undefined ? [] : [`More: --before ${page.next}`];
      print(options, page, [...table(header, rows), ...more]);
    });
}

function endCommand(name: string, outcome: string, description: string): Command {
  return serverCommand(name, description)
    .argument("<log>", "the log's id")
    .argument("<index>", "the proposal's index")
    .requiredOption("--reason <text>", "why; it stands on the log")
    .addHelpText("after", example(`proposals ${name} 0a1b… 42 --reason "price not agreed"`))
    .action(async (log: string, index: string, options: ServerOptions & { reason: string }) => {
      const path = `/v1/proposals/${encodeURIComponent(log)}/${encodeURIComponent(index)}`;
      const { reason } = options;
      const ended = await call<{ index: string }>(apiOf(options), "POST", `${path}/${outcome}`, {
        reason,
      });
      print(options, ended, [`Entry ${ended.index}: the ${outcome} of proposal ${index}.`]);
    });
}

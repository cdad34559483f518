/** `minutebook log`: a log for an instance, and what logs there are. */
import { type Command, Option } from "commander";
import { Platform } from "../core/unit.ts";
import { call } from "./api.ts";
import { apiOf, example, group, instant, type ServerOptions, serverCommand } from "./option.ts";
import { print, table } from "./print.ts";

export function logCommand(): Command {
  const commands = [createCommand(), listCommand(), publishCommand(), restrictCommand()];
  return group("log", "logs: create, list, and who may read them", commands).addHelpText(
    "after",
    example("log list"),
  );
}

interface CreateOptions extends ServerOptions {
  uniqueId: string;
  platform: string;
  billingFrom: string;
  control?: string;
  skewMs?: string;
  durationCapMs?: string;
}

function createCommand(): Command {
  return serverCommand("create", "open the log of an instance that has none")
    .requiredOption("--unique-id <id>", "the instance's unique_id, as its runners report it")
    .addOption(
      new Option("--platform <platform>", "what kind of instance")
        .choices(Platform.options)
        .makeOptionMandatory(),
    )
    .requiredOption("--billing-from <instant>", "hosted usage before it is not billed", instant)
    .addOption(
      new Option("--control <control>", "dual: what a person changes needs a second one").choices([
        "single",
        "dual",
      ]),
    )
    .option("--skew-ms <ms>", "how far a runner's clock may be ahead (default: 300000)")
    .option("--duration-cap-ms <ms>", "longer builds are held (default: 31 days)")
    .addHelpText(
      "after",
      example(
        "log create --unique-id 0c9f… --platform dotcom --billing-from 2026-11-01 --control dual",
      ),
    )
    .action(async (options: CreateOptions) => {
      const created = await call<{ log: string; vkey: string; receipt_vkey: string }>(
        apiOf(options),
        "POST",
        "/v1/logs",
        {
          unique_id: options.uniqueId,
          platform: options.platform,
          billing_from: options.billingFrom,
          control: options.control,
          skew_ms: options.skewMs,
          duration_cap_ms: options.durationCapMs,
        },
      );
      print(options, created, [
        `log      ${created.log}`,
        `vkey     ${created.vkey}`,
        `receipt  ${created.receipt_vkey}`,
      ]);
    });
}

interface ListedLog {
  log: string;
  unique_id: string;
  platform: string;
  size: string;
  sealed: string;
}

function listCommand(): Command {
  return serverCommand("list", "the logs that the token's bearer may see")
    .addHelpText("after", example("log list --json"))
    .action(async (options: ServerOptions) => {
      const answer = await call<{ logs: ListedLog[] }>(apiOf(options), "GET", "/v1/logs");
      const rows = answer.logs.map(({ log, unique_id, platform, size, sealed }) => {
        return [log, unique_id, platform, size, sealed];
      });
      print(options, answer, table(["log", "unique_id", "platform", "size", "sealed"], rows));
    });
}

function publishCommand(): Command {
  return visibilityCommand("publish", "let anyone read a log, entries and all", true);
}

/** What was read once, or lies in a cache, stays known. */
function restrictCommand(): Command {
  return visibilityCommand("restrict", "only auditors, witnesses and the tenant read a log", false);
}

function visibilityCommand(name: string, description: string, isPublic: boolean): Command {
  return serverCommand(name, description)
    .argument("<log>", "the log's id")
    .addHelpText("after", example(`log ${name} 0a1b…`))
    .action(async (log: string, options: ServerOptions) => {
      const path = `/v1/logs/${encodeURIComponent(log)}/visibility`;
      const body = { public: isPublic };
      const { index, ...rest } = await call<{ index: string }>(apiOf(options), "POST", path, body);
      const who = isPublic ? "anyone may read" : "only who is entitled to may read";
      print(options, { index, ...rest }, [`Entry ${index}: ${who} log ${log}.`]);
    });
}

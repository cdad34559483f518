/** `minutebook class`: which class of rates a project has. */
import type { Command } from "commander";
import { call } from "./api.ts";
import {
  apiOf,
  example,
  group,
  instant,
  type ServerOptions,
  serverCommand,
  soon,
} from "./option.ts";
import { print } from "./print.ts";

const SOURCE = "command";

export function classCommand(): Command {
  return group("class", "project classes", [setCommand()]).addHelpText(
    "after",
    example("class set --log 0a1b… --project 50020 --class open_source"),
  );
}

interface SetOptions extends ServerOptions {
  log: string;
  project: string;
  class: string;
  from?: string;
  source: string;
}

function setCommand(): Command {
  return serverCommand("set", "give a project a class; without one it is `standard`")
    .requiredOption("--log <id>", "the log")
    .requiredOption("--project <id>", "the platform's number of the project")
    .requiredOption("--class <name>", "as rate cards name it")
    .option("--from <instant>", "builds that finish from then on (default: in a minute)", instant)
    .option("--source <text>", "who says so", SOURCE)
    .addHelpText("after", example("class set --log 0a1b… --project 50020 --class open_source"))
    .action(async (options: SetOptions) => {
      const effective_from = options.from ?? soon();
      const path = `/v1/logs/${encodeURIComponent(options.log)}/project_classes`;
      const set = await call<{ index: string }>(apiOf(options), "POST", path, {
        project_id: options.project,
        class: options.class,
        effective_from,
        source: options.source,
      });
      print(options, set, [`Entry ${set.index}: ${options.class} from ${effective_from} on.`]);
    });
}

/** `minutebook limit`: what a namespace may use in a month. */
import { type Command, Option } from "commander";
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
const GRACE_MINUTES = "1000";

export function limitCommand(): Command {
  return group("limit", "monthly minutes of namespaces", [setCommand()]).addHelpText(
    "after",
    example("limit set --log 0a1b… --namespace 1001 --minutes 10000"),
  );
}

interface SetOptions extends ServerOptions {
  log: string;
  namespace: string;
  minutes: string;
  beyond: string;
  cap: string;
  grace: string;
  from?: string;
  source: string;
  sourceVersion?: string;
}

function setCommand(): Command {
  return serverCommand("set", "set a namespace's monthly minutes")
    .requiredOption("--log <id>", "the log")
    .requiredOption("--namespace <id>", "the platform's number of the root namespace")
    .requiredOption("--minutes <n>", "compute minutes a month; 0 is no limit")
    .addOption(
      new Option("--beyond <what>", "what happens beyond")
        .choices(["stop", "bill"])
        .default("stop"),
    )
    .option("--cap <minutes>", "with bill: how far beyond at most", "")
    .option("--grace <minutes>", "how far running jobs may go beyond", GRACE_MINUTES)
    .option("--from <instant>", "since when it holds (default: in a minute)", instant)
    .option("--source <text>", "who says so", SOURCE)
    .option("--source-version <n>", "the source's own; an older one is refused (default: the time)")
    .addHelpText("after", example("limit set --log 0a1b… --namespace 1001 --minutes 10000"))
    .action(async (options: SetOptions) => {
      const effective_from = options.from ?? soon();
      const path = `/v1/logs/${encodeURIComponent(options.log)}/quotas`;
      const set = await call<{ index: string }>(apiOf(options), "POST", path, {
        namespace_id: options.namespace,
        monthly_minutes: options.minutes,
        beyond: options.beyond,
        cap: options.cap,
        grace_minutes: options.grace,
        effective_from,
        source: options.source,
        source_version: options.sourceVersion ?? String(Date.now()),
      });
      print(options, set, [
        `Entry ${set.index}: ${options.minutes} minutes a month from ${effective_from} on.`,
      ]);
    });
}

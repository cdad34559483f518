/** `minutebook limit`: what a namespace may use in a month. */
import { type Command, Option } from "commander";
import { call } from "./api.ts";
import { apiOf, example, group, instant, type ServerOptions, serverCommand } from "./option.ts";
import { print } from "./print.ts";

const SOURCE = "command";

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
  cap?: string;
  grace?: string;
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
    .option("--cap <minutes>", "with bill: how far beyond at most (default: no cap)")
    .option("--grace <minutes>", "with stop: how far running jobs may go beyond (default: 1000)")
    .option("--from <instant>", "since when it holds (default: at once)", instant)
    .option("--source <text>", "who says so", SOURCE)
    .option("--source-version <n>", "the source's own; an older one is refused (default: the time)")
    .addHelpText("after", example("limit set --log 0a1b… --namespace 1001 --minutes 10000"))
    .action(async (options: SetOptions) => {
      const { minutes, from } = options;
      const path = `/v1/quotas/${encodeURIComponent(options.log)}/${encodeURIComponent(options.namespace)}`;
      const set = await call<{ index: string }>(apiOf(options), "PUT", path, {
        monthly_minutes: minutes,
        beyond: options.beyond,
        cap: options.cap,
        grace_minutes: options.grace,
        effective_from: from,
        source: options.source,
        source_version: options.sourceVersion ?? String(Date.now()),
      });
      const since = from === undefined ? "" : ` from ${from} on`;
      print(options, set, [`Entry ${set.index}: ${minutes} minutes a month${since}.`]);
    });
}

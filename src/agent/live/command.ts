/** `minutebook agent live`: heartbeats of what gitlab-runner says that it runs. */
import type { Command } from "commander";
import { SURROUNDINGS } from "../client.ts";
import {
  type Common,
  everyMs,
  example,
  httpAddress,
  notice,
  print,
  subcommand,
  withLive,
} from "../invocation.ts";
import { follow } from "./follow.ts";

interface LiveCommandOptions extends Common {
  runner: URL;
  usageLogs: string;
  every?: number;
}

const RUNNER_DEFAULT = "http://127.0.0.1:9252";

export function liveCommand(): Command {
  return subcommand("live", "say every 30 seconds what runs, until it is stopped")
    .requiredOption(
      "--usage-logs <folder>",
      "where usage-log-*.json files lie: ids are learnt there",
    )
    .option(
      "--runner <url>",
      "gitlab-runner's listen_address",
      httpAddress,
      new URL(RUNNER_DEFAULT),
    )
    .option("--every <seconds>", "between two heartbeats, 1 to 60 (default: 30)", everyMs)
    .addHelpText(
      "after",
      "\nRuns beside `agent import` on the same state folder. It says, and stops no job: see `agent relay`,\n" +
        "which says for itself what runs and takes the place of this command.\n" +
        example("live --state agent --usage-logs /etc/gitlab-runner/usage-log"),
    )
    .action(async (options: LiveCommandOptions) => {
      await withLive(options, async (signal) => {
        const { state: folder, runner, usageLogs: logs, every: intervalMs } = options;
        const surroundings = SURROUNDINGS;
        const follows = { folder, runner, logs, surroundings, signal, intervalMs };
        const { beats } = await follow({ ...follows, onNotice: notice });
        print(options, { beats }, `${beats} heartbeats.`);
      });
    });
}

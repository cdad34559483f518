/** `minutebook pack`: minutes that a namespace has bought. */
import type { Command } from "commander";
import { call } from "./api.ts";
import { apiOf, example, group, month, type ServerOptions, serverCommand } from "./option.ts";
import { print } from "./print.ts";

const SOURCE = "command";
const EXAMPLE = "pack set --log 0a1b… --namespace 1001 --pack order-7 --minutes 5000";

export function packCommand(): Command {
  return group("pack", "minutes that namespaces have bought", [setCommand()]).addHelpText(
    "after",
    example(EXAMPLE),
  );
}

interface SetOptions extends ServerOptions {
  log: string;
  namespace: string;
  pack: string;
  minutes: string;
  bought?: string;
  expires?: string;
  source: string;
  sourceVersion?: string;
}

function setCommand(): Command {
  return serverCommand("set", "give a namespace a pack of minutes, or change one that it has")
    .requiredOption("--log <id>", "the log")
    .requiredOption("--namespace <id>", "the platform's number of the root namespace")
    .requiredOption(
      "--pack <id>",
      "the source's name of the pack; the same again is a later version",
    )
    .requiredOption("--minutes <n>", "compute minutes in all; 0 takes the pack back")
    .option("--bought <month>", "first month that it is good for (default: this one)", month)
    .option("--expires <month>", "the last such month (default: the twelfth)", month)
    .option("--source <text>", "who says so", SOURCE)
    .option("--source-version <n>", "the source's own; an older one is refused (default: the time)")
    .addHelpText("after", example(EXAMPLE))
    .action(async (options: SetOptions) => {
      const { pack, minutes } = options;
      const set = await call<{ index: string }>(apiOf(options), "POST", "/v1/packs", {
        log: options.log,
        namespace_id: options.namespace,
        pack_id: pack,
        minutes,
        purchased_in: options.bought,
        expires_in: options.expires,
        source: options.source,
        source_version: options.sourceVersion ?? String(Date.now()),
      });
      print(options, set, [`Entry ${set.index}: pack ${pack} of ${minutes} minutes.`]);
    });
}

/** The keys that logs are signed with: published by `minutebook vkey`, changed by `minutebook key`. */
import { type Command, Option } from "commander";
import type { Purpose } from "../core/log-key.ts";
import type { ShownLogKey } from "../flow/key/log-key.ts";
import { type Api, call } from "./api.ts";
import { CommandError } from "./failure.ts";
import { apiOf, example, type ServerOptions, serverCommand } from "./option.ts";
import { print, table } from "./print.ts";

const PURPOSES = ["checkpoint", "receipt"] as const satisfies readonly Purpose[];

interface KeysOfLog {
  log: string;
  origin: string;
  keys: ShownLogKey[];
}

export function vkeyCommand(): Command {
  return serverCommand("vkey", "the keys that verify logs, to be published beside the service")
    .argument("[log]", "one log; without it, all that the token's bearer may see")
    .addHelpText("after", example("vkey 0a1b…"))
    .action(async (log: string | undefined, options: ServerOptions) => {
      const api = apiOf(options);
      const logs = await Promise.all((await logsOf(api, log)).map((one) => keysOf(api, one)));
      const rows = logs.flatMap(({ keys }) =>
        keys.map(({ purpose, state, vkey }) => [purpose, STATE[state], vkey]),
      );
      print(options, { logs }, table(["purpose", "state", "vkey"], rows));
    });
}

const STATE: Readonly<Record<ShownLogKey["state"], string>> = {
  in_force: "current",
  retired: "retired",
  held: "next",
};

export function addLogKeyCommand(): Command {
  return changeCommand(
    "add-log-key",
    "sign with the service's next key too, from the next seal on",
    {
      state: "added",
      choose: (keys) => keys.find(({ state }) => state === "held"),
      missing: "the service holds no next key (NEXT_LOG_KEY_FILE, NEXT_RECEIPT_KEY_FILE)",
      done: "signs from the next seal on",
    },
  );
}

export function retireLogKeyCommand(): Command {
  return changeCommand("retire-log-key", "sign with the newer keys alone, from the next seal on", {
    state: "retired",
    choose: (keys) => {
      const [oldest, ...newer] = keys.filter(({ state }) => state === "in_force");
      return newer.length > 0 ? oldest : undefined;
    },
    missing: "there is one key in force: add another first",
    done: "signs no more",
  });
}

interface Change {
  state: "added" | "retired";
  /** Of the keys of one purpose, oldest first. */
  choose: (keys: readonly ShownLogKey[]) => ShownLogKey | undefined;
  missing: string;
  done: string;
}

interface ChangeOptions extends ServerOptions {
  all?: true;
  purpose: Purpose;
  vkey?: string;
}

function changeCommand(name: string, description: string, change: Change): Command {
  return serverCommand(name, description)
    .argument("[log]", "the log's id")
    .addOption(new Option("--all", "every log that the token's bearer may see").conflicts("vkey"))
    .addOption(
      new Option("--purpose <purpose>", "what the key signs")
        .choices(PURPOSES)
        .default("checkpoint"),
    )
    .option("--vkey <text>", "which key, where it is not the obvious one")
    .addHelpText("after", example(`key ${name} 0a1b…`))
    .action(async (log: string | undefined, options: ChangeOptions) => {
      if ((log === undefined) !== (options.all === true)) {
        throw new CommandError("invalid-usage", "a log's id, or --all");
      }
      const api = apiOf(options);
      const changed: Changed[] = [];
      // Of all logs, those that have done it already are passed over.
      for (const one of await logsOf(api, log)) {
        const vkey = options.vkey ?? (await chosen(api, one, options.purpose, change));
        if (vkey === undefined) continue;
        const body = { purpose: options.purpose, state: change.state, vkey };
        const { index } = await call<{ index: string }>(api, "POST", pathOf(one), body);
        changed.push({ log: one, index, vkey });
      }
      if (changed.length === 0) throw new CommandError("no-log-key", change.missing);
      print(
        options,
        { changed },
        changed.map(
          ({ log: id, index, vkey }) => `Log ${id}, entry ${index}: ${vkey} ${change.done}.`,
        ),
      );
    });
}

interface Changed {
  log: string;
  index: string;
  vkey: string;
}

async function chosen(
  api: Api,
  log: string,
  purpose: Purpose,
  { choose }: Change,
): Promise<string | undefined> {
  const { keys } = await keysOf(api, log);
  return choose(keys.filter((key) => key.purpose === purpose))?.vkey;
}

async function keysOf(api: Api, log: string): Promise<KeysOfLog> {
  return await call<KeysOfLog>(api, "GET", pathOf(log));
}

async function logsOf(api: Api, log: string | undefined): Promise<string[]> {
  if (log !== undefined) return [log];
  const { logs } = await call<{ logs: { log: string }[] }>(api, "GET", "/v1/logs");
  return logs.map((listed) => listed.log);
}

function pathOf(log: string): string {
  return `/v1/logs/${encodeURIComponent(log)}/log_keys`;
}

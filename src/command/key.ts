/** `minutebook key`: who speaks on a log, and the end of a key; what logs are signed with. */
import type { Command } from "commander";
import { call } from "./api.ts";
import { addLogKeyCommand, retireLogKeyCommand } from "./log-key.ts";
import { apiOf, example, group, type ServerOptions, serverCommand } from "./option.ts";
import { print, table } from "./print.ts";

export function keyCommand(): Command {
  return group("key", "agents' keys, and those that logs are signed with", [
    listCommand(),
    revokeCommand(),
    addLogKeyCommand(),
    retireLogKeyCommand(),
  ]).addHelpText("after", example("key list --log 0a1b…"));
}

interface ListedKey {
  kid: string;
  index: string;
  runners: string[];
  revoked: boolean;
  trusted_up_to?: string;
}

interface KeyPage {
  log: string;
  as_of: string;
  sealed: string;
  keys: ListedKey[];
  next?: string;
}

function listCommand(): Command {
  return serverCommand("list", "the keys of a log")
    .requiredOption("--log <id>", "the log")
    .addHelpText("after", example("key list --log 0a1b…"))
    .action(async (options: ServerOptions & { log: string }) => {
      const api = apiOf(options);
      const path = `/v1/logs/${encodeURIComponent(options.log)}/keys`;
      let page = await call<KeyPage>(api, "GET", path);
      const keys = [...page.keys];
      while (page.next !== undefined) {
        page = await call<KeyPage>(api, "GET", `${path}?after=${page.next}`);
        keys.push(...page.keys);
      }
      const { log, as_of, sealed } = page;
      const rows = keys.map((key) => [
        key.kid,
        key.index,
        String(key.runners.length),
        key.revoked ? "revoked" : key.trusted_up_to === undefined ? "current" : "rotated",
        key.trusted_up_to ?? "",
      ]);
      const header = ["kid", "index", "runners", "state", "trusted_up_to"];
      print(options, { log, as_of, sealed, keys }, [
        ...table(header, rows),
        `As of ${as_of} entries.`,
      ]);
    });
}

interface RevokeOptions extends ServerOptions {
  log: string;
  kid: string;
  lastTrustedCounter: string;
  reason: string;
}

function revokeCommand(): Command {
  // No argument but an option: every 64th kid begins with a dash.
  return serverCommand("revoke", "end a key; its reports above a counter are held from now on")
    .requiredOption("--kid <kid>", "the key")
    .requiredOption("--log <id>", "the log")
    .requiredOption("--last-trusted-counter <n>", "up to it the key's reports are welcome for ever")
    .requiredOption("--reason <text>", "goes on the log: no names of persons")
    .addHelpText(
      "after",
      example(
        'key revoke --log 0a1b… --kid NzbL… --last-trusted-counter 120 --reason "host was lost"',
      ),
    )
    .action(async (options: RevokeOptions) => {
      const { log, kid, lastTrustedCounter: last_trusted_counter, reason } = options;
      const path = `/v1/keys/${encodeURIComponent(kid)}/revoke`;
      const revoked = await call<{ index: string }>(apiOf(options), "POST", path, {
        log,
        last_trusted_counter,
        reason,
      });
      print(options, revoked, [`Revoked by entry ${revoked.index}.`]);
    });
}

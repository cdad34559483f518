/** `minutebook card`: rates by machine type and project class. */
import type { Command } from "commander";
import { NewCard } from "../flow/rate/card.ts";
import { call } from "./api.ts";
import {
  apiOf,
  example,
  group,
  readJsonFile,
  type ServerOptions,
  serverCommand,
} from "./option.ts";
import { print } from "./print.ts";

export function cardCommand(): Command {
  return group("card", "rate cards", [addCommand()]).addHelpText(
    "after",
    example("card add hosted.json --log 0a1b…"),
  );
}

const SHAPE = `
The file: {"tracking": "hosted", "effective_from": "2026-11-01T00:00:00.000Z",
  "runner_factors": {"linux-small": "1", "*": "2"}, "project_factors": {"open_source": "0.5"},
  "not_billable": ["runner_system_failure"], "source": "price list 7"}
`;

function addCommand(): Command {
  return serverCommand("add", "put a rate card on a log")
    .argument("<file>", "the card, in JSON")
    .requiredOption("--log <id>", "the log")
    .addHelpText("after", SHAPE + example("card add hosted.json --log 0a1b…"))
    .action(async (file: string, options: ServerOptions & { log: string }) => {
      const card = readJsonFile(file, NewCard);
      const path = `/v1/logs/${encodeURIComponent(options.log)}/rate_cards`;
      const added = await call<{ index: string }>(apiOf(options), "POST", path, card);
      print(options, added, [
        `Entry ${added.index}: the ${card.tracking} card from ${card.effective_from} on.`,
      ]);
    });
}

/** `minutebook propose`: asks for what a second person must approve. */
import { randomBytes } from "node:crypto";
import type { Command } from "commander";
import { z } from "zod";
import { ACTIONS, type Action } from "../core/control.ts";
import { instantText } from "../core/unit.ts";
import { tokenDigest } from "../flow/key/enrol.ts";
import { call } from "./api.ts";
import {
  apiOf,
  example,
  group,
  positive,
  readJsonFile,
  type ServerOptions,
  serverCommand,
} from "./option.ts";
import { print } from "./print.ts";
import { choicesOf, membersOf, PROPOSABLE } from "./proposable.ts";

const DAYS_MAX = 31;
const SECONDS_PER_DAY = 86_400;
const TOKEN_BYTES = 32;

interface ProposeOptions extends ServerOptions {
  log: string;
  reason: string;
  ticket: string;
  days: number;
}

type Proposed = { index: string; effect: string } & (
  | { state: "done" }
  | { state: "open"; nonce: string; expires_at: string }
);

export function proposeCommand(): Command {
  const commands = ACTIONS.map(actionCommand);
  return group("propose", "ask for what a second person must approve", commands).addHelpText(
    "after",
    `\nWhat a file says: minutebook propose <action> --help\n${example(callOf("quota"))}`,
  );
}

function actionCommand(action: Action): Command {
  const { about, example: file } = PROPOSABLE[action];
  return serverCommand(action, about)
    .argument("<file>", "what the entry is to say, in JSON")
    .requiredOption("--log <id>", "the log")
    .requiredOption("--reason <code>", "of the operator's own list: a-z, 0-9 and _")
    .requiredOption("--ticket <text>", "where the case is written down")
    .option("--days <n>", "how long it may be decided about", positive(DAYS_MAX), 7)
    .addHelpText("after", fileHelp(action, file) + example(callOf(action)))
    .action(async (path: string, options: ProposeOptions) => {
      const { content, token } = completed(action, readJsonFile(path, Content), options);
      const { log, reason, ticket } = options;
      const expires_in_s = options.days * SECONDS_PER_DAY;
      const asked = { log, action, content, reason, ticket, expires_in_s };
      const proposed = await call<Proposed>(apiOf(options), "POST", "/v1/proposals", asked);
      const secret = token === undefined ? {} : { token };
      print(options, { ...proposed, ...secret }, linesOf(proposed, log, token));
    });
}

function callOf(action: Action): string {
  return `propose ${action} file.json --log 0a1b… --reason contract --ticket OPS-17`;
}

function fileHelp(action: Action, file: object): string {
  const members = membersOf(action);
  const left = [
    ...("effective_from" in members ? ["Without effective_from: at once."] : []),
    ...("reason" in members ? ["Without reason and ticket: those of the options."] : []),
    ...(action === "enrolment"
      ? [
          "Without token_sha256: a token is made, and printed once.",
          "Without claim_until: a day longer than it may be decided about.",
        ]
      : []),
  ];
  const lines = [...JSON.stringify(file, undefined, 2).split("\n"), ...choicesOf(members), ...left];
  return `\nThe file:\n${lines.map((line) => `  ${line}\n`).join("")}`;
}

const Content = z.record(z.string(), z.unknown());
type Content = z.infer<typeof Content>;

/**
 * A file as it is asked for. Whoever has the token may claim the enrolment, so only its digest is; and it has to
 * be good beyond the last moment at which it may be approved.
 */
export function completed(
  action: Action,
  file: Content,
  { days, reason, ticket }: Pick<ProposeOptions, "days" | "reason" | "ticket">,
): { content: Content; token?: string } {
  const content = "reason" in membersOf(action) ? { reason, ticket, ...file } : file;
  if (action !== "enrolment") return { content };
  const claim_until = instantText(Date.now() + (days + 1) * SECONDS_PER_DAY * 1_000);
  if ("token_sha256" in file) return { content: { claim_until, ...file } };
  const token = randomBytes(TOKEN_BYTES).toString("base64url");
  return { content: { claim_until, token_sha256: tokenDigest(token), ...file }, token };
}

function linesOf(proposed: Proposed, log: string, token: string | undefined): string[] {
  const secret =
    token === undefined ? [] : [token, "Shown once; it is good when this is approved."];
  if (proposed.state === "done") {
    return [...secret, `Entry ${proposed.index}: the log needs no second person.`];
  }
  return [
    ...secret,
    `Proposal ${proposed.index}, to be decided about until ${proposed.expires_at}.`,
    `What it would do: ${proposed.effect}`,
    `Another person: minutebook approve ${log} ${proposed.index}`,
  ];
}

/** `minutebook propose`: asks for what a second person must approve. */
import { randomBytes } from "node:crypto";
import { Argument, type Command } from "commander";
import { z } from "zod";
import { ACTIONS, type Action } from "../core/control.ts";
import { tokenDigest } from "../flow/key/enrol.ts";
import { call } from "./api.ts";
import {
  apiOf,
  example,
  positive,
  readJsonFile,
  type ServerOptions,
  serverCommand,
} from "./option.ts";
import { print } from "./print.ts";

const DAYS_MAX = 31;
const SECONDS_PER_DAY = 86_400;
const TOKEN_BYTES = 32;

const SHAPE = `
The file: the entry that is asked for, in JSON, without approval, by and salt; without effective_from: at once.
  For \`quota\`: {"namespace_id": "1001", "monthly_minutes": "5000", "beyond": "stop", "cap": "",
  "grace_minutes": "1000", "source": "contract", "source_version": "1"}
  For \`enrolment\` without token_sha256: a token is made, and printed once.
`;

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
  return serverCommand("propose", "ask for what a second person must approve")
    .addArgument(new Argument("<action>", "the kind of entry").choices(ACTIONS))
    .argument("<file>", "what the entry is to say, in JSON")
    .requiredOption("--log <id>", "the log")
    .requiredOption("--reason <code>", "of the operator's own list: a-z, 0-9 and _")
    .requiredOption("--ticket <text>", "where the case is written down")
    .option("--days <n>", "how long it may be decided about", positive(DAYS_MAX), 7)
    .addHelpText(
      "after",
      SHAPE + example("propose quota limit.json --log 0a1b… --reason contract --ticket OPS-17"),
    )
    .action(async (action: Action, file: string, options: ProposeOptions) => {
      const { content, token } = tokened(action, readJsonFile(file, Content));
      const { log, reason, ticket } = options;
      const expires_in_s = options.days * SECONDS_PER_DAY;
      const asked = { log, action, content, reason, ticket, expires_in_s };
      const proposed = await call<Proposed>(apiOf(options), "POST", "/v1/proposals", asked);
      const secret = token === undefined ? {} : { token };
      print(options, { ...proposed, ...secret }, linesOf(proposed, log, token));
    });
}

const Content = z.record(z.string(), z.unknown());

/** Whoever has the token may claim the enrolment: only its digest is asked for. */
function tokened(action: Action, content: z.infer<typeof Content>) {
  if (action !== "enrolment" || "token_sha256" in content) return { content };
  const token = randomBytes(TOKEN_BYTES).toString("base64url");
  return { content: { ...content, token_sha256: tokenDigest(token) }, token };
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

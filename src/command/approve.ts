/** `minutebook approve`: the second person, by an ID token that was made for just this proposal. */
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import type { Command } from "commander";
import { APPROVAL_SCOPE } from "../core/id-token.ts";
import { readSigningKey } from "../custody.ts";
import { call } from "./api.ts";
import { CommandError } from "./failure.ts";
import { dataFolder } from "./folder.ts";
import { localIdToken, localToken } from "./issuer.ts";
import { apiOf, example, type ServerOptions, serverCommand } from "./option.ts";
import { print } from "./print.ts";

interface ApproveOptions extends ServerOptions {
  data?: string;
  subject: string;
  idToken?: string;
}

interface Proposal {
  action: string;
  content: string;
  effect: string;
  reason: string;
  ticket: string;
  by: string;
  nonce: string;
  state: string;
}

interface Approved {
  index: string;
  approval: string;
  action: string;
}

const HOW = `
Without --id-token and --data: shows the proposal, and with what to ask your issuer for the token.
The token is an ID token of OpenID Connect with the proposal's nonce, of a sign-in within ten minutes.
`;

export function approveCommand(): Command {
  return serverCommand("approve", "approve a proposal, as somebody else than who made it")
    .argument("<log>", "the log's id")
    .argument("<index>", "the proposal's index")
    .option("--id-token <file>", "your ID token; - reads it from standard input")
    .option("--data <folder>", "let the local issuer of a data folder sign in (development)")
    .option("--subject <text>", "whom it signs in", "approver")
    .addHelpText("after", HOW + example("approve 0a1b… 42 --id-token token.txt"))
    .action(async (log: string, index: string, options: ApproveOptions) => {
      const key = options.data && readSigningKey(dataFolder(options.data).keys.issuer);
      const { subject } = options;
      const api = key
        ? apiOf({ ...options, token: await localToken(key, APPROVER, { subject }) })
        : apiOf(options);
      const path = `/v1/proposals/${encodeURIComponent(log)}/${encodeURIComponent(index)}`;
      const proposal = await call<Proposal>(api, "GET", path);
      const { nonce } = proposal;
      const id_token = key
        ? await localIdToken(key, { nonce, subject, roles: ["approver"] })
        : await givenToken(options.idToken);
      if (id_token === undefined) {
        print(options, { ...proposal, ask_for: parameters(nonce) }, explained(proposal));
        return;
      }
      const approved = await call<Approved>(api, "POST", `${path}/approval`, { id_token });
      print(options, approved, [
        `Entry ${approved.index}: ${approved.action}, by approval ${approved.approval}.`,
      ]);
    });
}

const APPROVER = [{ role: "approver", logs: "*", namespaces: "*" }] as const;

/** @throws CommandError `unreadable-file` */
async function givenToken(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  if (file === "-") return (await text(process.stdin)).trim();
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new CommandError("unreadable-file", `${file} cannot be read`, { cause: error });
  }
}

/** Of an authorization request (OpenID Connect Core §3.1.2.1), beside client_id and redirect_uri. */
function parameters(nonce: string): Record<string, string> {
  return { response_type: "code", scope: APPROVAL_SCOPE, nonce, prompt: "login", max_age: "0" };
}

function explained({ nonce, ...proposal }: Proposal): string[] {
  const { action, content, effect, reason, ticket, by, state } = proposal;
  return [
    `${action}, ${state}: asked for by ${by} (${reason}, ${ticket})`,
    `What it says: ${content}`,
    `What it would do: ${effect}`,
    "To approve it, ask your issuer for an ID token with these, and come again with --id-token:",
    `  ${new URLSearchParams(parameters(nonce))}`,
  ];
}

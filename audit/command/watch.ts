/** `minutebook-audit watch`: follows a log, and raises an alarm when it contradicts itself. */
import { setTimeout as delay } from "node:timers/promises";
import { type Command, InvalidArgumentError } from "commander";
import { CannotLook } from "../finding.ts";
import { readToken, readTrust } from "../given.ts";
import { addressOf } from "../http/source.ts";
import { sha256, verifyNow } from "../native.ts";
import { printable } from "../print.ts";
import { type Look, type LookOptions, look } from "../watch/look.ts";
import { documentOf, sentencesOf } from "../watch/print.ts";
import { WatchState, writeEvidence } from "../watch/state.ts";
import {
  type AddCommand,
  COULD_NOT_LOOK,
  collect,
  type Exit,
  type Output,
  reason,
} from "./output.ts";
import { keysOf } from "./place.ts";
import { trusting } from "./verify.ts";

interface WatchOptions {
  vkey: string[];
  policy?: string;
  tokenFile?: string;
  state: string;
  monitor: string[];
  interval: number;
  once?: true;
  json?: true;
}

const HELP = `
Every checkpoint must follow from all that were seen before, at whichever address. That is computed from
the log's tiles, of whichever address has them. An address that went back, two signed checkpoints of
which one is not in the other's tree, or 24 hours in which the log does not show what was seen, end the
watch: both notes are printed, and in a file beside the state with the proof that fails. Keep the state:
without it nobody knows what was seen. What cannot be reached, or shows nothing that the log has signed,
is no alarm; how long ago it was seen is said. A token goes to the server of the first address, and to
no other. Several may watch with one state.

Exit status: 1 an alarm. With --once: 0 all addresses seen and consistent, 2 not all could be looked at,
or more was seen than the log shows.

Examples:
  minutebook-audit watch https://ledger.example/logs/LOG --vkey ledger.vkey --state ledger.watch
  minutebook-audit watch https://a.example/logs/LOG https://b.example/logs/LOG --vkey ledger.vkey \\
    --monitor https://witness.example --state ledger.watch --once
`;

export const addWatch: AddCommand = (program, output, done) => {
  setting(trusting(program.command("watch")))
    .description("follow a log, and raise an alarm on a rollback or a split view")
    .argument("<url...>", "addresses of one log: https://HOST/logs/LOG")
    .addHelpText("after", HELP)
    .action(async (urls: string[], options: WatchOptions) => {
      done(await watch(urls, options, output));
    });
};

function setting(command: Command): Command {
  return command
    .requiredOption("--state <file>", "what was seen so far; begun where there is none")
    .option("--monitor <url>", "a witness's monitoring address; may come again", collect, [])
    .option("--interval <seconds>", "from one look to the next", seconds, 60)
    .option("--once", "look once")
    .option("--json", "print each look as one line of JSON");
}

async function watch(urls: string[], options: WatchOptions, output: Output): Promise<Exit> {
  const looking = lookOptions(urls, options);
  const { log } = looking;
  for (;;) {
    const looked = await look(looking);
    if (looked.alarm !== undefined) return raise(log, looked, options, output);
    if (looked.unkept !== undefined) throw looked.unkept;
    output.out(said(log, looked, options));
    const open = looked.missed.length + looked.ahead.length > 0;
    if (options.once) return open ? COULD_NOT_LOOK : 0;
    await delay(options.interval * 1000);
  }
}

/** Whatever becomes of the files: an alarm is said, with all that proves it. */
function raise(log: string, looked: Look, options: WatchOptions, output: Output): Exit {
  const { alarm, unkept } = looked;
  const troubles: unknown[] = unkept === undefined ? [] : [unkept];
  let file: string | undefined;
  try {
    file = alarm && writeEvidence(options.state, log, alarm);
  } catch (error) {
    troubles.push(error);
  }
  output.out(said(log, looked, options, file));
  for (const trouble of troubles) output.err(`not kept: ${reason(trouble)}\n`);
  return 1;
}

function said(log: string, looked: Look, { json }: WatchOptions, file?: string): string {
  if (json) return `${JSON.stringify(documentOf(log, looked, file))}\n`;
  return printable(sentencesOf(log, looked, file));
}

function lookOptions(urls: string[], options: WatchOptions): LookOptions {
  const { vkeys } = readTrust(options.vkey, options.policy);
  const addresses = urls.map(addressOf);
  const logs = new Set(addresses.map(({ log }) => log));
  const [log = "", ...others] = logs;
  if (others.length > 0) throw new CannotLook(`addresses of several logs: ${[...logs].join(", ")}`);
  const trust = { vkeys: keysOf(log, vkeys), verify: verifyNow };
  return {
    ...trust,
    urls: [...new Set(addresses.map(({ url }) => url))],
    monitors: [...new Set(options.monitor.map((url) => url.replace(/\/+$/, "")))],
    log,
    origin: trust.vkeys[0]?.name ?? "",
    hash: sha256,
    token: options.tokenFile === undefined ? undefined : readToken(options.tokenFile),
    state: new WatchState(options.state, log, trust),
    now: Date.now,
  };
}

function seconds(text: string): number {
  if (!/^[1-9][0-9]{0,5}$/.test(text))
    throw new InvalidArgumentError("Expected whole seconds, at least 1.");
  return Number(text);
}

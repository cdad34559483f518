/** `minutebook-audit watch`: follows a log, and raises an alarm when it contradicts itself. */
import { setTimeout as delay } from "node:timers/promises";
import { type Command, InvalidArgumentError } from "commander";
import { encodeBase64 } from "../../src/core/text.ts";
import { CannotLook } from "../finding.ts";
import { readToken, readTrust } from "../given.ts";
import { sha256, verifyNow } from "../native.ts";
import { printable } from "../print.ts";
import { newestOf } from "../watch/compare.ts";
import { type Look, type LookOptions, look } from "../watch/look.ts";
import { readSeen, type Seen, updated, writeEvidence, writeSeen } from "../watch/state.ts";
import { type AddCommand, COULD_NOT_LOOK, collect, type Exit, type Output } from "./output.ts";
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
the log's tiles. An address that went back, or two signed checkpoints of which one is not in the other's
tree, end the watch: both notes and the proof that fails are in a file beside the state. Keep the state:
without it nobody knows what was seen. What cannot be reached is no alarm; how long ago it was seen is said.
A token goes to the server of the first address, and to no other.

Exit status: 1 an alarm. With --once: 0 all addresses seen and consistent, 2 not all could be looked at.

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
  let seen = readSeen(options.state, log, looking);
  for (;;) {
    const looked = await look(seen, looking);
    const now = Date.now();
    if (looked.alarm !== undefined) {
      const file = writeEvidence(options.state, log, looked.alarm);
      say({ log, looked, seen, now, file }, options, output);
      return 1;
    }
    seen = updated(seen, looked.views, now);
    // Before it is said: what anybody was told must not be forgotten.
    writeSeen(options.state, log, seen);
    say({ log, looked, seen, now }, options, output);
    if (options.once) return looked.missed.length > 0 ? COULD_NOT_LOOK : 0;
    await delay(options.interval * 1000);
  }
}

function lookOptions(urls: string[], options: WatchOptions): LookOptions {
  const { vkeys } = readTrust(options.vkey, options.policy);
  const log = /\/logs\/([0-9a-f]{32})\/?$/.exec(urls[0] ?? "")?.[1];
  if (log === undefined) throw new CannotLook(`${urls[0]} is no address of a log`);
  const own = keysOf(log, vkeys);
  return {
    urls,
    monitors: options.monitor,
    log,
    origin: own[0]?.name ?? "",
    vkeys: own,
    hash: sha256,
    verify: verifyNow,
    token: options.tokenFile === undefined ? undefined : readToken(options.tokenFile),
  };
}

interface Said {
  log: string;
  looked: Look;
  seen: readonly Seen[];
  now: number;
  /** With the evidence of an alarm. */
  file?: string;
}

function say(said: Said, { json }: WatchOptions, output: Output): void {
  output.out(json ? `${JSON.stringify(document(said))}\n` : printable(sentences(said)));
}

function sentences({ file, log, looked, now, seen }: Said): string {
  const { alarm, missed, views } = looked;
  const at = new Date(now).toISOString();
  if (alarm !== undefined) {
    return `${at} log ${log}: ALARM: ${alarm.code}: ${alarm.detail}; evidence in ${file}\n`;
  }
  const newest = newestOf(views)?.checkpoint.size;
  const lines = missed.map(({ from, reason }) => {
    return `could not look at ${from}, ${ageOf(lastSeen(seen, from), now)}: ${reason}`;
  });
  if (newest !== undefined) lines.unshift(`${newest} entries, consistent with all that was seen`);
  const ahead =
    newest === undefined ? [] : seen.filter(({ checkpoint }) => checkpoint.size > newest);
  for (const { checkpoint, from } of ahead) {
    lines.push(`${from} has shown ${checkpoint.size} entries, and the log shows ${newest} so far`);
  }
  return lines.map((line) => `${at} log ${log}: ${line}\n`).join("");
}

function document({ file, log, looked, now, seen }: Said): object {
  const { alarm, missed, views } = looked;
  return {
    at: new Date(now).toISOString(),
    log,
    ...(alarm && {
      alarm: alarm.code,
      detail: alarm.detail,
      evidence: file,
      notes: alarm.notes,
      proof: alarm.proof.map(encodeBase64),
    }),
    views: views.map(({ checkpoint, from }) => ({
      from,
      size: String(checkpoint.size),
      root: encodeBase64(checkpoint.root),
    })),
    missed: missed.map(({ from, reason }) => {
      const last = lastSeen(seen, from);
      return { from, reason, ...(last !== undefined && { last_seen_ms_ago: now - last }) };
    }),
  };
}

function ageOf(at: number | undefined, now: number): string {
  return at === undefined ? "never seen" : `last seen ${Math.round((now - at) / 1000)} s ago`;
}

/** Milliseconds since the epoch; undefined for an address that has shown nothing yet. */
function lastSeen(seen: readonly Seen[], from: string): number | undefined {
  const shown = seen.filter((sighting) => sighting.from === from).map(({ at }) => at);
  return shown.length === 0 ? undefined : Math.max(...shown);
}

function seconds(text: string): number {
  if (!/^[1-9][0-9]{0,5}$/.test(text)) throw new InvalidArgumentError("whole seconds, at least 1");
  return Number(text);
}

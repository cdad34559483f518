/** The command line `minutebook-audit`: reads its arguments, audits log by log, and says how it went. */
import { basename, dirname } from "node:path";
import cliProgress from "cli-progress";
import { Command, CommanderError } from "commander";
import type { Vkey } from "../src/core/note.ts";
import { isOriginOf, type Kept } from "./archive/checkpoints.ts";
import { CannotLook } from "./finding.ts";
import { folderSource, logsIn } from "./folder.ts";
import { readKept, readUsage, readVkeys } from "./given.ts";
import { sha256, verifyNow } from "./native.ts";
import { exitOf, printResult, resultJson } from "./print.ts";
import { openSpill } from "./spill.ts";
import type { UsageFile } from "./tally/usage.ts";
import { openThreads } from "./threads.ts";
import { type AuditResult, audit } from "./verify.ts";

/** Where the command writes to; `progress` wants a terminal. */
export interface Output {
  out(text: string): void;
  err(text: string): void;
  progress: boolean;
}

interface VerifyOptions {
  vkey: string[];
  checkpoint: string[];
  usage: string[];
  live?: true;
  json?: true;
}

type Exit = 0 | 1 | 2;
const COULD_NOT_LOOK = 2;
const LOG = /^[0-9a-f]{32}$/;

const HELP = `
Exit status: 0 all proven, 1 a finding, 2 could not look, or something could not be judged.
An archive that proves nothing is never a pass.

An archive alone cannot show that its end, or one of its checkpoints, was taken away: keep a checkpoint
of every audit, and give it to the next one. Without <log>, each key given must have its log there.

Example:
  minutebook-audit verify ./archive --vkey ledger.vkey --checkpoint october.note --usage november.json
`;

/** Runs the arguments after the program's name; resolves to the exit status. */
export async function run(args: readonly string[], output: Output): Promise<Exit> {
  let exit: Exit = 0;
  const program = new Command("minutebook-audit")
    .description("Checks a Minutebook archive without trusting who serves it")
    .exitOverride()
    .configureOutput({ writeOut: output.out, writeErr: output.err });
  program
    .command("verify")
    .description("verify every entry of a log, or of all logs of an archive")
    .argument("<archive>", "the archive's folder")
    .argument("[log]", "one log's id; all logs of the folder without it")
    .option(
      "--vkey <text or file>",
      "a log's key, trusted from elsewhere; may come again",
      collect,
      [],
    )
    .option(
      "--checkpoint <file>",
      "a checkpoint kept from earlier or from a witness: it must be in the tree; may come again",
      collect,
      [],
    )
    .option("--usage <file>", "an answer of GET /v1/usage, in JSON; may come again", collect, [])
    .option("--live", "the log is being written: entries past the largest checkpoint are no matter")
    .option("--json", "print the outcome as JSON")
    .addHelpText("after", HELP)
    .action(async (archive: string, log: string | undefined, options: VerifyOptions) => {
      exit = await verifyArchive(archive, log, options, output);
    });
  try {
    await program.parseAsync(args, { from: "user" });
    return exit;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : COULD_NOT_LOOK;
    output.err(`could not look: ${reason(error)}\n`);
    return COULD_NOT_LOOK;
  }
}

async function verifyArchive(
  archive: string,
  one: string | undefined,
  options: VerifyOptions,
  output: Output,
): Promise<Exit> {
  // Both `ARCHIVE LOG` and `ARCHIVE/LOG` name one log.
  const inside = one === undefined && LOG.test(basename(archive));
  const folder = inside ? dirname(archive) : archive;
  const named = inside ? basename(archive) : one;
  const present = await logsIn(folder);
  if (named !== undefined && !present.includes(named)) {
    throw new CannotLook(`${folder} holds no log ${named}`);
  }
  const logs = named === undefined ? present : [named];
  const vkeys = options.vkey.flatMap(readVkeys);
  const kept = options.checkpoint.map((name) => readKept(name, { vkeys, verify: verifyNow }, logs));
  const usage = options.usage.map((name) => readUsage(name, logs));
  const live = options.live === true;
  const exits = new Set<Exit>();
  const documents: object[] = [];
  const missed = (log: string, why: string): void => {
    exits.add(COULD_NOT_LOOK);
    documents.push({ log, exit: COULD_NOT_LOOK, could_not_look: why });
    output.err(`log ${log}: could not look: ${why}\n`);
  };
  for (const log of logs) {
    try {
      const result = await auditLog(folder, log, { vkeys, kept, usage, live, output });
      exits.add(exitOf(result));
      documents.push(resultJson(result));
      if (!options.json) output.out(printResult(result));
    } catch (error) {
      missed(log, reason(error));
    }
  }
  // Else a log whose whole folder is gone would not be missed.
  for (const { name } of named === undefined ? vkeys : []) {
    if (!logs.some((log) => isOriginOf(log, name))) missed(name, `${folder} has no archive of it`);
  }
  if (options.json) output.out(`${JSON.stringify({ logs: documents }, undefined, 2)}\n`);
  if (exits.has(1)) return 1;
  return exits.has(COULD_NOT_LOOK) ? COULD_NOT_LOOK : 0;
}

async function auditLog(
  folder: string,
  log: string,
  given: {
    vkeys: readonly Vkey[];
    kept: readonly Kept[];
    usage: readonly UsageFile[];
    live: boolean;
    output: Output;
  },
): Promise<AuditResult> {
  const spill = openSpill();
  const threads = openThreads();
  const bar = given.output.progress ? progressBar(log) : undefined;
  try {
    return await audit(folderSource(folder, log), {
      log,
      vkeys: given.vkeys,
      kept: given.kept.filter(({ checkpoint }) => isOriginOf(log, checkpoint.origin)),
      live: given.live,
      usage: given.usage.filter((file) => file.log === log),
      hash: sha256,
      verify: verifyNow,
      reader: threads,
      openPiles: spill.open,
      ...(bar && { onProgress: bar.update }),
    });
  } finally {
    bar?.stop();
    spill.close();
    await threads.close();
  }
}

/** On one line. Not even a fault of this program, or a full disk, may end with the status of a finding. */
function reason(error: unknown): string {
  return (error instanceof CannotLook ? error.message : String(error)).replace(/\s+/g, " ");
}

function progressBar(log: string): { update(done: bigint, size: bigint): void; stop(): void } {
  const bar = new cliProgress.SingleBar({
    format: `${log} {bar} {value}/{total} entries, {eta_formatted}`,
    stream: process.stderr,
    clearOnComplete: true,
  });
  bar.start(1, 0);
  return {
    update: (done, size) => {
      bar.setTotal(Number(size));
      bar.update(Number(done));
    },
    stop: () => bar.stop(),
  };
}

function collect(value: string, before: string[]): string[] {
  return [...before, value];
}

/** The command line `minutebook-audit`: reads its arguments, audits log by log, and says how it went. */
import { readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import cliProgress from "cli-progress";
import { Command, CommanderError } from "commander";
import { parseVkey, type Vkey } from "../src/core/note.ts";
import { CannotLook } from "./finding.ts";
import { folderSource, logsIn } from "./folder.ts";
import { sha256, verifyNow } from "./native.ts";
import { exitOf, printResult, resultJson } from "./print.ts";
import { openSpill } from "./spill.ts";
import { readUsageFile, type UsageFile } from "./tally/usage.ts";
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
  usage: string[];
  json?: true;
}

type Exit = 0 | 1 | 2;
const COULD_NOT_LOOK = 2;
const LOG = /^[0-9a-f]{32}$/;

const HELP = `
Exit status: 0 all proven, 1 a finding, 2 could not look, or something could not be judged.
An archive that proves nothing is never a pass.

Example:
  minutebook-audit verify ./archive --vkey ledger.vkey --usage november.json
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
    .option("--usage <file>", "an unfiltered answer of GET /v1/usage; may come again", collect, [])
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
    // Not even a fault of this program, or a full disk, may end with the status of a finding.
    const known = error instanceof CannotLook ? error.message : undefined;
    output.err(`could not look: ${known ?? (error instanceof Error ? error.stack : error)}\n`);
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
  const usage = options.usage.map((name) => readUsage(name, logs));
  const exits = new Set<Exit>();
  const documents: object[] = [];
  for (const log of logs) {
    try {
      const result = await auditLog(folder, log, { vkeys, usage, output });
      exits.add(exitOf(result));
      documents.push(resultJson(result));
      if (!options.json) output.out(printResult(result));
    } catch (error) {
      if (!(error instanceof CannotLook)) throw error;
      exits.add(COULD_NOT_LOOK);
      documents.push({ log, exit: COULD_NOT_LOOK, could_not_look: error.message });
      output.err(`log ${log}: could not look: ${error.message}\n`);
    }
  }
  if (options.json) output.out(`${JSON.stringify({ logs: documents }, undefined, 2)}\n`);
  if (exits.has(1)) return 1;
  return exits.has(COULD_NOT_LOOK) ? COULD_NOT_LOOK : 0;
}

async function auditLog(
  folder: string,
  log: string,
  given: { vkeys: readonly Vkey[]; usage: readonly UsageFile[]; output: Output },
): Promise<AuditResult> {
  const spill = openSpill();
  const threads = openThreads();
  const bar = given.output.progress ? progressBar(log) : undefined;
  try {
    return await audit(folderSource(folder, log), {
      log,
      vkeys: given.vkeys,
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

/** A key's text, or a file with one on each line. */
function readVkeys(textOrFile: string): Vkey[] {
  const given = parseVkey(textOrFile);
  if (given !== undefined) return [given];
  const lines = readText(textOrFile)
    .split(/\r?\n/)
    .filter((line) => line !== "");
  return lines.map((line) => {
    const vkey = parseVkey(line);
    if (vkey === undefined) throw new CannotLook(`${textOrFile} holds a line that is no vkey`);
    return vkey;
  });
}

function readUsage(name: string, logs: readonly string[]): UsageFile {
  const file = readUsageFile(name, readText(name));
  if (file === undefined) throw new CannotLook(`${name} is no answer of GET /v1/usage`);
  if (!logs.includes(file.log)) throw new CannotLook(`${name} is about log ${file.log}`);
  return file;
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new CannotLook(`${path} cannot be read`, { cause: error });
  }
}

function collect(value: string, before: string[]): string[] {
  return [...before, value];
}

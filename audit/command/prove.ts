/** `minutebook-audit prove`: a file that proves one entry to whoever has the log's key. */
import { type Command, Option } from "commander";
import { writeText } from "../durable.ts";
import { NotProven } from "../fetch/proven.ts";
import { CannotLook } from "../finding.ts";
import { readTrust } from "../given.ts";
import { sha256, verifyNow } from "../native.ts";
import { printable } from "../print.ts";
import { type Proved, prove, type Wanted } from "../proof/prove.ts";
import { openSpill } from "../spill.ts";
import { type AddCommand, type Exit, type Output, progressBar } from "./output.ts";
import { keysOf, openPlace } from "./place.ts";
import { wholeNumber } from "./range.ts";
import { trusting } from "./verify.ts";

interface ProveOptions {
  vkey: string[];
  policy?: string;
  tokenFile?: string;
  job?: bigint;
  tracking?: "hosted" | "self_managed";
  index?: bigint;
  size?: bigint;
  out: string;
}

const HELP = `
The proof is made from the log's tiles and a second time from all its entries; only where both give the
same is it written. It is a C2SP tlog-proof with the entry in it: minutebook-audit check-proof reads it.
The key that signed a build's report has an entry of its own: prove that too, for --key-proof.

Exit status: 0 written, 1 the log is not what was signed, 2 could not look, or there is no such entry.

Examples:
  minutebook-audit prove ./archive LOG --vkey ledger.vkey --job 4711 --out job-4711.tlog-proof
  minutebook-audit prove https://ledger.example/logs/LOG --vkey ledger.vkey --index 12 --out key.tlog-proof
`;

export const addProve: AddCommand = (program, output, done) => {
  choosing(trusting(program.command("prove")))
    .description("prove one build, or any one entry, in a file of its own")
    .argument("<archive>", "the archive's folder, or a log's address: https://HOST/logs/LOG")
    .argument("[log]", "the log's id, where the folder holds several")
    .requiredOption("--out <file>", "where the proof goes, as job-4711.tlog-proof")
    .addHelpText("after", HELP)
    .action(async (archive: string, log: string | undefined, options: ProveOptions) => {
      done(await proveOne(archive, log, options, output));
    });
};

function choosing(command: Command): Command {
  const tracking = new Option("--tracking <tracking>", "of the job, where it was reported in both");
  return command
    .option("--job <id>", "the job whose usage entry is to be proven", wholeNumber)
    .addOption(tracking.choices(["hosted", "self_managed"]))
    .option("--index <n>", "the index of the entry to be proven", wholeNumber)
    .option(
      "--size <size>",
      "prove it under the checkpoint of this size (the newest)",
      wholeNumber,
    );
}

async function proveOne(
  archive: string,
  log: string | undefined,
  options: ProveOptions,
  output: Output,
): Promise<Exit> {
  const wanted = wantedOf(options);
  const { vkeys } = readTrust(options.vkey, options.policy);
  const place = await openPlace(archive, log, options.tokenFile);
  const [id = "", ...others] = place.logs;
  if (others.length > 0) throw new CannotLook(`${archive} holds several logs: name one of them`);
  const spill = openSpill();
  const bar = progressBar(output, id, "bundles");
  try {
    const proved = await prove(await place.open(id), {
      vkeys: keysOf(id, vkeys),
      verify: verifyNow,
      hash: sha256,
      openPiles: spill.open,
      wanted,
      size: options.size,
      ...(bar && { onProgress: bar.update }),
    });
    writeText(options.out, proved.text);
    output.out(said(id, proved, options.out));
    return 0;
  } catch (error) {
    if (!(error instanceof NotProven)) throw error;
    output.out(printable(`log ${id}\nFOUND: ${error.path}: ${error.code}: ${error.message}\n`));
    return 1;
  } finally {
    bar?.stop();
    spill.close();
  }
}

function wantedOf({ index, job, tracking }: ProveOptions): Wanted {
  if ((index === undefined) === (job === undefined)) {
    throw new CannotLook("say which entry: by --job ID or by --index N");
  }
  return index === undefined ? { job: String(job), tracking } : { index };
}

function said(log: string, { checkpoint, hashes, index }: Proved, file: string): string {
  return printable(
    `log ${log}\n  entry ${index} under checkpoint ${checkpoint.size} of ${checkpoint.origin}\n` +
      `PROVEN: by ${hashes} hashes, from tiles and from entries alike: ${file}\n`,
  );
}

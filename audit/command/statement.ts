/** `minutebook-audit statement`: a closed month's statement, made again from the log alone. */
import { InvalidArgumentError } from "commander";
import { parseCanonical } from "../../src/core/json.ts";
import { NotProven } from "../fetch/proven.ts";
import { CannotLook } from "../finding.ts";
import { readFile, readTrust } from "../given.ts";
import { sha256, verifyNow } from "../native.ts";
import { printable } from "../print.ts";
import { openSpill } from "../spill.ts";
import { reproduce } from "../statement/reproduce.ts";
import { type AddCommand, type Exit, type Output, progressBar } from "./output.ts";
import { keysOf, openPlace } from "./place.ts";
import { trusting } from "./verify.ts";

interface StatementOptions {
  vkey: string[];
  policy?: string;
  tokenFile?: string;
  month: string;
  against?: string;
}

const HELP = `
The statement is canonical JSON, made from the entries under the newest checkpoint by an implementation of
its own. Without --against it is printed. What agents and approvers signed, and whether the month might be
closed at all, is for verify to say. So is what the month's files are: their rows and hashes (exports) are
copied from the entry that closed the month, and only verify makes the files again.

Exit status: 0 made, and the same as --against; 1 another, or the log is not what was signed; 2 could not look.

Examples:
  minutebook-audit statement ./archive LOG --vkey ledger.vkey --month 2026-10 --against 2026-10.json
  minutebook-audit statement https://ledger.example/logs/LOG --vkey ledger.vkey --month 2026-10
`;

/** Beside the statement, which is the service's to the byte. */
const CONDITIONS =
  "NOT JUDGED here: whether the month might be closed at all; only a log that verify passes says so\n";
const FILES =
  "NOT JUDGED here: the month's files; exports is what the entry says, and only verify makes them again\n";
const ANCHORED =
  "NOT PROVEN here: who holds the checkpoint is what the entry says; ask verify with --policy\n";

export const addStatement: AddCommand = (program, output, done) => {
  trusting(program.command("statement"))
    .description("make the statement of a closed month again, from the log's entries alone")
    .argument("<archive>", "the archive's folder, or a log's address: https://HOST/logs/LOG")
    .argument("[log]", "the log's id, where the folder holds several")
    .requiredOption("--month <month>", "as 2026-10", monthOf)
    .option("--against <file>", "the statement as it was served, to the byte")
    .addHelpText("after", HELP)
    .action(async (archive: string, log: string | undefined, options: StatementOptions) => {
      done(await state(archive, log, options, output));
    });
};

async function state(
  archive: string,
  log: string | undefined,
  options: StatementOptions,
  output: Output,
): Promise<Exit> {
  const { vkeys } = readTrust(options.vkey, options.policy);
  const place = await openPlace(archive, log, options.tokenFile);
  const [id = "", ...others] = place.logs;
  if (others.length > 0) throw new CannotLook(`${archive} holds several logs: name one of them`);
  const served = options.against === undefined ? undefined : readFile(options.against);
  const spill = openSpill();
  const bar = progressBar(output, id, "bundles");
  try {
    const made = await reproduce(await place.open(id), {
      ...{ vkeys: keysOf(id, vkeys), verify: verifyNow, hash: sha256, openPiles: spill.open },
      month: options.month,
      ...(bar && { onProgress: bar.update }),
    });
    if (served === undefined) output.out(made);
    output.err(CONDITIONS + FILES);
    if (!made.includes('"anchor":{"by":[]')) output.err(ANCHORED);
    return served === undefined ? 0 : compare(made, served, output);
  } catch (error) {
    if (!(error instanceof NotProven)) throw error;
    output.out(printable(`log ${id}\nFOUND: ${error.path}: ${error.code}: ${error.message}\n`));
    return 1;
  } finally {
    bar?.stop();
    spill.close();
  }
}

/** Names the members that are not the same: who reads it looks there. */
function compare(made: string, served: Uint8Array, output: Output): Exit {
  if (Buffer.from(served).equals(Buffer.from(made))) {
    output.out("SAME: the statement follows from the log's entries, to the byte\n");
    return 0;
  }
  const ours: object = JSON.parse(made);
  const theirs = parseCanonical(served);
  const isObject = typeof theirs === "object" && !Array.isArray(theirs);
  const names = isObject ? new Set([...Object.keys(ours), ...Object.keys(theirs)]) : [];
  const other = [...names].filter((name) => {
    return (
      JSON.stringify(Reflect.get(ours, name)) !== JSON.stringify(Reflect.get(Object(theirs), name))
    );
  });
  const where = isObject ? other.join(", ") : "it is no canonical JSON object";
  output.out(printable(`FOUND: another statement follows from the log's entries: ${where}\n`));
  return 1;
}

function monthOf(text: string): string {
  if (!/^[0-9]{4}-(?:0[1-9]|1[0-2])(?:-01)?$/.test(text)) {
    throw new InvalidArgumentError("Expected a month such as 2026-10.");
  }
  return `${text.slice(0, 7)}-01`;
}

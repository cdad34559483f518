/** `minutebook-audit bundle`: a log, or a range of it, fetched into a folder. */
import { InvalidArgumentError } from "commander";
import { Contradiction, type Copied, type CopyOptions, copy } from "../fetch/copy.ts";
import { NotProven } from "../fetch/proven.ts";
import { folderSource, folderStore } from "../folder.ts";
import { readTrust } from "../given.ts";
import { sha256, verifyNow } from "../native.ts";
import { printable } from "../print.ts";
import { openSpill } from "../spill.ts";
import { type AddCommand, type Exit, type Output, progressBar } from "./output.ts";
import { keysOf, openOne } from "./place.ts";
import { type RangeOptions, rangeOf, ranging } from "./range.ts";
import { trusting } from "./verify.ts";

interface BundleOptions extends RangeOptions {
  vkey: string[];
  policy?: string;
  tokenFile?: string;
  atOnce: number;
}

const AT_ONCE = 8;
const AT_ONCE_MAX = 64;

const HELP = `
Every file is proven under the log's newest checkpoint before it is there, and the checkpoint comes last:
ended at any moment, the same command goes on where it was. Later it fetches what is new, after proving
that the log has only grown. Of a policy its keys are taken; the quorum is for verify to ask.

Then: minutebook-audit verify <folder> --vkey KEY

Signatures of a checkpoint that is there already are added to, and never taken away.

Exit status: 0 all fetched, 1 the log contradicts itself or what was fetched before, 2 could not look, or
what is shown is the same log and older than the copy.

Examples:
  minutebook-audit bundle https://ledger.example/logs/LOG ./copy --vkey ledger.vkey --token-file auditor.jwt
  minutebook-audit bundle https://ledger.example/logs/LOG ./part --vkey ledger.vkey --from 1000 --to 1999
`;

export const addBundle: AddCommand = (program, output, done) => {
  ranging(trusting(program.command("bundle")))
    .description("fetch a log, or a range of its entries, into a folder")
    .argument("<archive>", "a log's address, https://HOST/logs/LOG, or a log's folder")
    .argument("<folder>", "where <log>/checkpoint/… and <log>/tile/… go")
    .option("--at-once <n>", "bundles under way at a time", atOnce, AT_ONCE)
    .addHelpText("after", HELP)
    .action(async (archive: string, folder: string, options: BundleOptions) => {
      done(await bundle(archive, folder, options, output));
    });
};

async function bundle(
  archive: string,
  folder: string,
  options: BundleOptions,
  output: Output,
): Promise<Exit> {
  const { policy, vkeys } = readTrust(options.vkey, options.policy);
  const range = rangeOf(options);
  const { log, source } = await openOne(archive, options.tokenFile);
  const store = await folderStore(folder, log);
  const spill = openSpill();
  const bar = progressBar(output, log, "bundles");
  try {
    const copied = await copy({
      from: source,
      to: folderSource(folder, log),
      put: store.put,
      vkeys: keysOf(log, vkeys),
      hash: sha256,
      verify: verifyNow,
      witnesses: policy?.witnesses.map(({ vkey }) => vkey) ?? [],
      openPiles: spill.open,
      range,
      atOnce: options.atOnce,
      ...(bar && { onProgress: bar.update }),
    } satisfies CopyOptions);
    output.out(said(log, copied));
    return 0;
  } catch (error) {
    output.out(printable(`log ${log}\n${contradiction(error)}`));
    return 1;
  } finally {
    bar?.stop();
    spill.close();
    await store.close();
  }
}

function said(log: string, copied: Copied): string {
  const { before, checkpoint, checkpoints, files, untrusted } = copied;
  const others = untrusted === 0 ? "" : `; ${untrusted} by keys that were not given are left out`;
  const grown = before === undefined ? "" : `  consistent with checkpoint ${before.size}\n`;
  return (
    `log ${log}\n  checkpoint ${checkpoint.size} of ${checkpoint.origin}\n${grown}` +
    `  ${files} files written, ${checkpoints} checkpoints${others}\n`
  );
}

/** What the log is at fault for; everything else is thrown on. */
function contradiction(error: unknown): string {
  if (error instanceof NotProven) {
    return `FOUND: ${error.path}: ${error.code}: ${error.message}\n`;
  }
  if (error instanceof Contradiction) {
    const notes = error.notes.map((note) => `---- signed ----\n${note}`).join("");
    return `FOUND: ${error.message}. Both are signed: keep them as evidence.\n${notes}`;
  }
  throw error;
}

function atOnce(text: string): number {
  const count = /^[1-9][0-9]?$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > AT_ONCE_MAX)
    throw new InvalidArgumentError(`Expected a whole number from 1 to ${AT_ONCE_MAX}.`);
  return count;
}

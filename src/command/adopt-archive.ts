/** `minutebook adopt-archive`: another archive in the place of one that was lost for good. */
import type { Command } from "commander";
import { type Adopted, adopt } from "../flow/log/adopt.ts";
import { CommandError } from "./failure.ts";
import { type DataOptions, dataCommand, example } from "./option.ts";
import { print } from "./print.ts";
import { showProgress } from "./progress.ts";
import { withWriter } from "./writer.ts";

interface AdoptOptions extends DataOptions {
  by: string;
  reason: string;
  acknowledgeWitnessAhead?: true;
}

/** As entries name a principal: no name of a person is in a hashed byte. */
const PRINCIPAL = /^p_[A-Za-z0-9_-]{22}$/;

export function adoptArchiveCommand(): Command {
  return dataCommand(
    "adopt-archive",
    "put all that was sealed of a log into an archive that has nothing else of it, and say so by an entry",
    "the service's environment",
  )
    .argument("<log>", "its id")
    .requiredOption("--by <principal>", "who answers for it: an opaque id, as entries have in `by`")
    .requiredOption(
      "--reason <text>",
      "what became of the archive that was lost; anyone may read it",
    )
    .option(
      "--acknowledge-witness-ahead",
      "although a witness has signed more of the log, or another tree: the entry says so too",
    )
    .addHelpText(
      "after",
      example(
        'adopt-archive 0a1b… --by p_8fZk… --reason "bucket deleted, ticket 4711"',
        "0 done, 1 refused: nothing was lost, or the archive has other content, 2 could not look",
      ),
    )
    .action(
      async (log: string, { by, reason, acknowledgeWitnessAhead, ...options }: AdoptOptions) => {
        if (!PRINCIPAL.test(by)) {
          throw new CommandError("invalid-usage", "--by: an opaque id, p_ and 22 characters");
        }
        const progress = showProgress("entries");
        const onProgress = (done: bigint, of: bigint): void => {
          progress.update(log, Number(done), Number(of));
        };
        const adopted = await withWriter(options.data, (writing) =>
          adopt(
            { ...writing, log, onProgress },
            { by, reason, despiteWitness: acknowledgeWitnessAhead === true },
          ),
        ).finally(progress.stop);
        print(options, documentOf(log, adopted), linesOf(log, adopted));
      },
    );
}

function documentOf(log: string, { index, sealed, size }: Adopted): object {
  return { log, size: String(size), index: String(index), sealed: String(sealed) };
}

function linesOf(log: string, { index, sealed, size }: Adopted): string[] {
  return [
    `log ${log}: ${size} sealed entries are archived again; entry ${index} says who answers for it.`,
    `Sealed to ${sealed}. Keep the checkpoints that auditors and witnesses have: they prove that it is the same log.`,
  ];
}

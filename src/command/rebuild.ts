/** `minutebook rebuild`: every derived table from the bytes. */
import type { Command } from "commander";
import { systemClock } from "../flow/clock.ts";
import { sha256 } from "../flow/report/signature.ts";
import { type Rebuilt, rebuild } from "../flow/usage/rebuild.ts";
import { withDatabase } from "./database.ts";
import { type DataOptions, dataCommand, example } from "./option.ts";
import { print, table } from "./print.ts";
import { showProgress } from "./progress.ts";

interface RebuildOptions extends DataOptions {
  write?: true;
}

export function rebuildCommand(): Command {
  return dataCommand(
    "rebuild",
    "derive every table beside the log anew; compare, or replace what differs",
    "OWNER_DATABASE_URL",
  )
    .option("--write", "put what was derived in the place of what differs")
    .addHelpText(
      "after",
      example(
        "rebuild --data data --write",
        "0 equal, or made so; 1 something differs; 2 could not look, or nothing was there",
      ),
    )
    .action(async (options: RebuildOptions) => {
      const progress = showProgress("entries");
      const rebuilt = await withDatabase("owner", options, async (sql) =>
        rebuild(
          { sql, clock: systemClock, hash: sha256 },
          {
            write: options.write === true,
            onProgress: (log, entries) => progress.update(log, Number(entries)),
          },
        ),
      ).finally(progress.stop);
      print(options, rebuilt, linesOf(rebuilt));
      process.exitCode = rebuilt.exit;
    });
}

function linesOf({ logs, entries, left, months, tables, typed }: Rebuilt): string[] {
  const rows = tables.map((row) => [row.table, row.state, row.missing, row.surplus]);
  const { count, first } = typed;
  const told = first && ` (the first: entry ${first.index} of log ${first.log}, ${first.column})`;
  return [
    ...table(["table", "state", "missing", "surplus"], rows),
    ...(count > 0 ? [`${count} columns of entries are not what their bytes give${told}.`] : []),
    ...otherLines(months),
    ...left.map(({ tables, why }) => `Left alone: ${tables.join(", ")}: ${why}.`),
    `Derived from: logs ${logs}, entries ${entries}.`,
  ];
}

function otherLines({ count, first }: Rebuilt["months"]): string[] {
  if (first === undefined) return [];
  const { log, month, why } = first;
  return [
    `${count} closed months are not what was signed (the first: ${month} of log ${log}: ${why}).`,
  ];
}

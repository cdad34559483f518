/** `minutebook recover`: what the archive has and the database lost, put back. */
import type { Command } from "commander";
import { Problem } from "../core/problem.ts";
import { openAppender } from "../flow/log/append.ts";
import {
  foresee,
  type Recovered,
  type Recovering,
  recover,
  writtenFrom,
} from "../flow/log/recover.ts";
import { RecoveryError } from "../flow/log/recovery.ts";
import { logsWritten } from "../store/log-names.ts";
import { type Dump, openDump } from "./dump.ts";
import { CommandError } from "./failure.ts";
import { type DataOptions, dataCommand, example } from "./option.ts";
import { print, table } from "./print.ts";
import { showProgress } from "./progress.ts";
import { type Writing, withWriter } from "./writer.ts";

interface RecoverOptions extends DataOptions {
  all?: true;
  dryRun?: true;
  dump?: string;
}

interface Refused {
  log: string;
  code: string;
  detail: string;
  /** Of a log that forked: the first entry that differs. */
  index?: string;
}

interface Outcome {
  recovered: Recovered[];
  refused: Refused[];
}

const STATUSES =
  "0 nothing is missing any more, 1 a log was refused (with --dry-run also: something is missing), " +
  "2 could not look, or no log was there";

export function recoverCommand(): Command {
  return dataCommand(
    "recover",
    "put back, byte for byte, what the archive has and the database lost; the service may run meanwhile",
    "the service's environment",
  )
    .argument("[log...]", "ids of the logs")
    .option("--all", "every log of the archive and of the database")
    .option("--dry-run", "write nothing, say what is missing")
    .option(
      "--dump <file>",
      "where a log forked: the database's own entries, one a line, as they stand",
    )
    .addHelpText("after", example("recover --all --data data", STATUSES))
    .action(async (logs: string[], options: RecoverOptions) => {
      if ((logs.length === 0) === (options.all === undefined)) {
        throw new CommandError("invalid-usage", "name logs, or say --all");
      }
      const outcome = await withWriter(options.data, (writing) => run(writing, logs, options));
      print(options, documentOf(outcome), linesOf(outcome));
      process.exitCode = statusOf(outcome, options);
    });
}

async function run(
  writing: Writing,
  named: readonly string[],
  options: RecoverOptions,
): Promise<Outcome> {
  const { archive, sql } = writing;
  const logs = options.all
    ? [...new Set([...(await archive.logs()), ...(await logsWritten(sql))])].sort()
    : named;
  const appender = openAppender(writing);
  const progress = showProgress("entries");
  const dump = options.dump === undefined ? undefined : openDump(options.dump);
  const outcome: Outcome = { recovered: [], refused: [] };
  try {
    for (const log of logs) {
      const recovering: Recovering = {
        ...{ ...writing, log, appender },
        onProgress: (done, of) => progress.update(log, Number(done), Number(of)),
      };
      try {
        const done = await (options.dryRun ? foresee(recovering) : recover(recovering));
        outcome.recovered.push(done);
      } catch (error) {
        outcome.refused.push(await refusedBy(error, recovering, dump));
      }
    }
  } finally {
    progress.stop();
    await Promise.all([appender.close(), dump?.close()]);
  }
  return outcome;
}

/** One log's refusal keeps no other from being recovered; what is no refusal ends the command. */
async function refusedBy(
  error: unknown,
  { sql, log }: Recovering,
  dump: Dump | undefined,
): Promise<Refused> {
  if (error instanceof Problem) {
    const detail = error.cause instanceof Error ? error.cause.message : error.title;
    return { log, code: error.code, detail };
  }
  if (!(error instanceof RecoveryError)) throw error;
  const { code, index, message } = error;
  if (index === undefined) return { log, code, detail: message };
  const kept = dump && (await dump.add(writtenFrom({ sql, log }, index)));
  const detail =
    dump === undefined
      ? `${message}; --dump FILE writes out what only the database has`
      : `${message}; what the database has from there on is in ${dump.path}: ${kept} entries`;
  return { log, code, detail, index: String(index) };
}

function documentOf({ recovered, refused }: Outcome): object {
  const logs = recovered.map(({ log, archived, before, after, unsigned, ...counts }) => ({
    ...{ log, archived: String(archived), before: String(before), after: String(after) },
    ...{ unsigned: String(unsigned), ...counts },
  }));
  return { logs, refused };
}

function linesOf({ recovered, refused }: Outcome): string[] {
  const rows = recovered.map(({ log, ...counts }) =>
    [
      log,
      counts.before,
      counts.after,
      counts.archived,
      counts.unsigned,
      counts.checkpoints,
      counts.aside,
    ].map(String),
  );
  const header = ["log", "entries", "now", "archived", "unsigned", "checkpoints", "set aside"];
  return [
    ...(rows.length > 0 ? table(header, rows) : []),
    ...refused.map(({ log, code, detail }) => `log ${log} was refused, ${code}: ${detail}`),
    ...(rows.length + refused.length === 0 ? ["There is no log, neither here nor there."] : []),
  ];
}

function statusOf({ recovered, refused }: Outcome, { dryRun }: RecoverOptions): 0 | 1 | 2 {
  if (recovered.length + refused.length === 0) return 2;
  const missing = recovered.some(
    ({ before, after, checkpoints, aside }) => after > before || checkpoints + aside > 0,
  );
  return refused.length > 0 || (dryRun === true && missing) ? 1 : 0;
}

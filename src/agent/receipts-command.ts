/** `minutebook agent receipts` and `minutebook agent trust`: what logs owe this host, and whose word counts. */
import type { Command } from "commander";
import { adoptHistory, adoptKeys } from "./adopt.ts";
import { BATCH_DEFAULT } from "./deliver.ts";
import {
  type Common,
  clientFor,
  collectText,
  example,
  notEnrolled,
  print,
  subcommand,
  withState,
} from "./invocation.ts";
import { type Account, accountOf, accountsText, check, isAlarming } from "./receipts.ts";
import { showProgress } from "./terminal.ts";
import { readKeys } from "./trust.ts";

export function receiptsCommand(): Command {
  return subcommand("receipts", "what the logs promised this host, and whether they kept it")
    .option("--check", "ask for proof of every promise that is open, and verify it")
    .addHelpText(
      "after",
      example(
        "receipts --check --state agent",
        "0 nothing is wrong, 1 a promise is broken, a log could not be asked, or evidence lies in " +
          "the state folder until somebody takes it away, 2 not understood",
      ),
    )
    .action(async (options: Common & { check?: true }) => {
      await withState(options, async (state, signal) => {
        const logs = new Map(state.settings.enrolments.map(({ log, server }) => [log, server]));
        if (logs.size === 0) throw notEnrolled();
        const accounts: Account[] = [];
        const display = showProgress(process.stderr);
        try {
          for (const [log, server] of logs) {
            const client = clientFor(server, signal);
            const onProgress = (done: number, total: number): void => {
              display.onProgress({ phase: "proving", done, total });
            };
            const account = options.check
              ? await check(state, log, client, { batch: BATCH_DEFAULT, onProgress })
              : accountOf(state, log);
            accounts.push(account);
          }
        } finally {
          display.stop();
        }
        print(options, { logs: accounts }, accountsText(accounts));
        if (accounts.some(isAlarming)) process.exitCode = 1;
      });
    });
}

interface TrustCommandOptions extends Common {
  log: string;
  vkey?: string;
  restart?: true;
}

export function trustCommand(): Command {
  return subcommand("trust", "say by which keys a log is to be known")
    .requiredOption("--log <id>", "the log")
    .option(
      "--vkey <text or file>",
      "keys of its checkpoints and receipts, published by whoever runs it, in place of those that " +
        "are trusted now; may come again",
      collectText,
    )
    .option(
      "--restart",
      "forget the checkpoint that the log no longer follows from: it lost its tail",
    )
    .addHelpText("after", example("trust --state agent --log 0a1b… --vkey minutebook.vkeys"))
    .action(async (options: TrustCommandOptions, command: Command) => {
      const { log, restart, vkey } = options;
      if (vkey === undefined && !restart)
        command.error("error: give --vkey, --restart, or both", { exitCode: 2 });
      await withState(options, async (state) => {
        if (!state.settings.enrolments.some((enrolment) => enrolment.log === log)) {
          throw notEnrolled();
        }
        if (vkey !== undefined) adoptKeys(state, readKeys(log, vkey), Date.now());
        if (restart) adoptHistory(state, log, Date.now());
        const account = accountOf(state, log);
        print(options, { trust: state.trust(log), ...account }, accountsText([account]));
      });
    });
}

/** `minutebook agent …`: the commands of a runner's host. Exit status 1 with one clear line on failure. */
import { text as readAll } from "node:stream/consumers";
import { Command, InvalidArgumentError } from "commander";
import { claim } from "./claim.ts";
import { BATCH_DEFAULT, BATCH_MAX } from "./deliver.ts";
import { importFolder } from "./import.ts";
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
import { liveCommand } from "./live/command.ts";
import { accountOf, sentencesOf } from "./receipts.ts";
import { receiptsCommand, trustCommand } from "./receipts-command.ts";
import { relayCommand } from "./relay/command.ts";
import { beginRotation, finishRotation } from "./rotate.ts";
import { malformedIn } from "./sources.ts";
import { summaryText } from "./summary.ts";
import { showProgress } from "./terminal.ts";
import { readKeys } from "./trust.ts";

interface ClaimCommandOptions extends Common {
  server: string;
  log: string;
  token: string;
  vkey?: string;
}

/** The sub-command for the program to add. */
export function agentCommand(): Command {
  const agent = new Command("agent").description(
    "sign and deliver what this host's gitlab-runner measured",
  );
  agent.addCommand(claimCommand());
  agent.addCommand(importCommand());
  agent.addCommand(rotateCommand());
  agent.addCommand(receiptsCommand());
  agent.addCommand(trustCommand());
  agent.addCommand(statusCommand());
  agent.addCommand(liveCommand());
  agent.addCommand(relayCommand());
  return agent;
}

function claimCommand(): Command {
  return subcommand("claim", "make a key and enrol it with a one-time token")
    .alias("enrol")
    .requiredOption("--server <url>", "Minutebook's address")
    .requiredOption("--log <id>", "the log that the token belongs to")
    .requiredOption("--token <token>", "the one-time token, or - to read it from standard input")
    .option(
      "--vkey <text or file>",
      "keys that the log's must be, published by whoever runs it; may come again " +
        "(default: those that the service shows now)",
      collectText,
    )
    .addHelpText(
      "after",
      example("claim --state agent --server https://minutebook.example --log 0a1b… --token -"),
    )
    .action(async (options: ClaimCommandOptions) => {
      await withState(options, async (state, signal) => {
        const { log, server, vkey } = options;
        const pinned = vkey === undefined ? undefined : readKeys(log, vkey);
        const token = options.token === "-" ? await readAll(process.stdin) : options.token;
        const client = clientFor(server, signal);
        const { kid, runners, unique_id } = await claim(state, client, {
          log,
          token: token.trim(),
          pinned,
        });
        const said = `Key ${kid} now speaks for ${runners.length} runners of ${unique_id}.`;
        print(options, { kid, log, runners, unique_id }, said);
      });
    });
}

function importCommand(): Command {
  return subcommand("import", "sign and send every usage log of a folder that is new")
    .argument("<folder>", "where usage-log-*.json files lie")
    .option("--batch <reports>", "reports in one request", batchSize, BATCH_DEFAULT)
    .addHelpText("after", example("import /etc/gitlab-runner/usage-log --state agent"))
    .action(async (folder: string, options: Common & { batch: number }) => {
      await withState(options, async (state, signal) => {
        const progress = showProgress(process.stderr);
        const { batch } = options;
        try {
          const summary = await importFolder({ state, folder, batch, signal, ...progress });
          progress.stop();
          print(options, summary, summaryText(summary));
        } finally {
          progress.stop();
        }
      });
    });
}

function rotateCommand(): Command {
  return subcommand("rotate", "replace the keys of this host by new ones")
    .option("--log <id>", "only the keys of this log")
    .addHelpText("after", example("rotate --state agent"))
    .action(async (options: Common & { log?: string }) => {
      await withState(options, async (state, signal) => {
        const chosen = state.settings.enrolments.filter(
          ({ log }) => options.log === undefined || log === options.log,
        );
        if (chosen.length === 0) throw notEnrolled();
        const keys: { old: string; new: string }[] = [];
        for (const enrolment of chosen) {
          const client = clientFor(enrolment.server, signal);
          const pending = beginRotation(state, enrolment, client.now());
          await finishRotation(state, pending, client);
          keys.push({ old: pending.kid, new: pending.successor });
        }
        print(options, { keys }, keys.map((key) => `${key.old} is now ${key.new}.`).join("\n"));
      });
    });
}

function statusCommand(): Command {
  return subcommand("status", "what this host has signed, and what waits")
    .addHelpText("after", example("status --state agent --json"))
    .action(async (options: Common) => {
      await withState(options, async (state) => {
        const enrolments = state.settings.enrolments.map(({ kid, log, server, unique_id }) => {
          const spool = state.spool(log);
          const { codes, depth, rejected } = spool;
          const counter = String(spool.counter(kid));
          const receipts = accountOf(state, log);
          return { unique_id, log, server, kid, counter, spool: depth, rejected, codes, receipts };
        });
        const sources = state.sources.all();
        const malformed = sources.reduce((sum, source) => sum + malformedIn(source), 0);
        const unrouted = sources.reduce((sum, source) => sum + source.unrouted.count, 0);
        const lines = enrolments.flatMap(({ unique_id, kid, counter, spool, receipts }) => [
          `${unique_id}: key ${kid}, ${counter} reports signed, ${spool} waiting.`,
          ...sentencesOf(receipts),
        ]);
        lines.push(`${malformed} malformed lines, ${unrouted} waiting for an enrolment.`);
        print(options, { enrolments, malformed, unrouted }, lines.join("\n"));
      });
    });
}

function batchSize(text: string): number {
  const size = /^[0-9]{1,3}$/.test(text) ? Number(text) : 0;
  if (size >= 1 && size <= BATCH_MAX) return size;
  throw new InvalidArgumentError("Expected a whole number from 1 to 500.");
}

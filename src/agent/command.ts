/** `minutebook agent …`: the commands of a runner's host. Exit status 1 with one clear line on failure. */
import { text as readAll } from "node:stream/consumers";
import { Command, InvalidArgumentError } from "commander";
import { claim } from "./claim.ts";
import { Client, SURROUNDINGS } from "./client.ts";
import { BATCH_DEFAULT, BATCH_MAX } from "./deliver.ts";
import { AgentError } from "./failure.ts";
import { importFolder } from "./import.ts";
import { beginRotation, finishRotation } from "./rotate.ts";
import { malformedIn } from "./sources.ts";
import { AgentState } from "./state.ts";
import { summaryText } from "./summary.ts";
import { printable, showProgress } from "./terminal.ts";

interface Common {
  state: string;
  json?: true;
}

/** The sub-command for the program to add. */
export function agentCommand(): Command {
  const agent = new Command("agent").description(
    "sign and deliver what this host's gitlab-runner measured",
  );
  agent.addCommand(claimCommand());
  agent.addCommand(importCommand());
  agent.addCommand(rotateCommand());
  agent.addCommand(statusCommand());
  return agent;
}

function claimCommand(): Command {
  return subcommand("claim", "make a key and enrol it with a one-time token")
    .requiredOption("--server <url>", "Minutebook's address")
    .requiredOption("--log <id>", "the log that the token belongs to")
    .requiredOption("--token <token>", "the one-time token, or - to read it from standard input")
    .addHelpText(
      "after",
      example("claim --state agent --server https://minutebook.example --log 0a1b… --token -"),
    )
    .action(async (options: Common & { server: string; log: string; token: string }) => {
      await withState(options, async (state, signal) => {
        const { log, server } = options;
        const token = options.token === "-" ? await readAll(process.stdin) : options.token;
        const client = clientFor(server, signal);
        const { kid, runners, unique_id } = await claim(state, client, {
          log,
          token: token.trim(),
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
          return { unique_id, log, server, kid, counter, spool: depth, rejected, codes };
        });
        const sources = state.sources.all();
        const malformed = sources.reduce((sum, source) => sum + malformedIn(source), 0);
        const unrouted = sources.reduce((sum, source) => sum + source.unrouted.count, 0);
        const lines = enrolments.map(
          ({ unique_id, kid, counter, spool }) =>
            `${unique_id}: key ${kid}, ${counter} reports signed, ${spool} waiting.`,
        );
        lines.push(`${malformed} malformed lines, ${unrouted} waiting for an enrolment.`);
        print(options, { enrolments, malformed, unrouted }, lines.join("\n"));
      });
    });
}

function subcommand(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .requiredOption("--state <dir>", "the agent's state folder: keys and spool; made when missing")
    .option("--json", "print one JSON document instead of sentences");
}

const STATUSES = "0 done, 1 not, and what to do is said, 2 not understood";

function example(call: string): string {
  return `\nExample:\n  $ minutebook agent ${call}\n\nExit status: ${STATUSES}.`;
}

/** Failures that a person can mend are one line; others keep their stack. */
async function withState(
  { state: folder }: Common,
  act: (state: AgentState, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  try {
    const state = new AgentState(folder);
    try {
      await act(state, stopSignal());
    } finally {
      state.close();
    }
  } catch (error) {
    process.stderr.write(`${printable(lineOf(error))}\n`);
    process.exitCode = 1;
  }
}

/** One line with the stable code; whatever else was thrown is no failure that we know. */
function lineOf(error: unknown): string {
  if (error instanceof AgentError) return `${error.code}: ${error.message}`;
  const stopped = error instanceof Error && error.name === "AbortError";
  if (stopped) return "stopped: nothing is lost; run again to go on.";
  throw error;
}

function clientFor(server: string, signal: AbortSignal): Client {
  return new Client({
    server,
    surroundings: SURROUNDINGS,
    signal,
    onRetry: (reason, ms) => process.stderr.write(`${server}: ${reason}; next try in ${ms} ms.\n`),
  });
}

/** The first Ctrl-C ends at the next safe point; the second one ends the process. */
function stopSignal(): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.once(name, () => {
      controller.abort();
    });
  }
  return controller.signal;
}

function print({ json }: Common, document: unknown, text: string): void {
  const lines = text.split("\n").map(printable);
  process.stdout.write(`${json ? JSON.stringify(document) : lines.join("\n")}\n`);
}

function batchSize(text: string): number {
  const size = Number(text);
  if (Number.isInteger(size) && size >= 1 && size <= BATCH_MAX) return size;
  throw new InvalidArgumentError("1 to 500.");
}

function notEnrolled(): AgentError {
  return new AgentError("not-enrolled", "No key is enrolled here: begin with `agent claim`.");
}

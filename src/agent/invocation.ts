/** What every command of the agent does alike: options, examples, failures, signals, output. */
import { existsSync, readFileSync } from "node:fs";
import { Command } from "commander";
import { Client, SURROUNDINGS } from "./client.ts";
import { AgentError } from "./failure.ts";
import { AgentState } from "./state.ts";
import { printable } from "./terminal.ts";

export interface Common {
  state: string;
  json?: true;
}

export function subcommand(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .requiredOption("--state <dir>", "the agent's state folder: keys and spool; made when missing")
    .option("--json", "print one JSON document instead of sentences");
}

const STATUSES = "0 done, 1 not, and what to do is said, 2 not understood";

export function example(call: string, statuses: string = STATUSES): string {
  return `\nExample:\n  $ minutebook agent ${call}\n\nExit status: ${statuses}.`;
}

/** An option whose values are texts, or files of texts; it may come again. */
export function collectText(value: string, before = ""): string {
  const text = existsSync(value) ? readFileSync(value, "utf8") : value;
  return `${before}${text}\n`;
}

/** Failures that a person can mend are one line; others keep their stack. */
export async function withState(
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

export function notEnrolled(): AgentError {
  return new AgentError("not-enrolled", "No key is enrolled here: begin with `agent claim`.");
}

/** One line with the stable code; whatever else was thrown is no failure that we know. */
function lineOf(error: unknown): string {
  if (error instanceof AgentError) return `${error.code}: ${error.message}`;
  const stopped = error instanceof Error && error.name === "AbortError";
  if (stopped) return "stopped: nothing is lost; run again to go on.";
  throw error;
}

export function clientFor(server: string, signal: AbortSignal): Client {
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

export function print({ json }: Common, document: unknown, text: string): void {
  const lines = text.split("\n").map(printable);
  process.stdout.write(`${json ? JSON.stringify(document) : lines.join("\n")}\n`);
}

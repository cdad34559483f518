/** What every command of the agent does alike: options, examples, failures, signals, output. */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { Client, SURROUNDINGS } from "./client.ts";
import { AgentError } from "./failure.ts";
import { lockFolder } from "./lock.ts";
import { AgentState, readEnrolments } from "./state.ts";
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

export async function withState(
  { state: folder }: Common,
  act: (state: AgentState, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  await guarded(async () => {
    const state = new AgentState(folder);
    try {
      await act(state, stopSignal());
    } finally {
      state.close();
    }
  });
}

/**
 * For what runs beside the other commands: it has `live/` of the state folder to itself, and reads
 * enrolments and keys, which are replaced as whole files.
 */
export async function withLive(
  { state: folder }: Common,
  act: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  await guarded(async () => {
    const live = join(folder, "live");
    mkdirSync(live, { recursive: true, mode: 0o700 });
    const unlock = lockFolder(live);
    try {
      if (readEnrolments(folder).length === 0) throw notEnrolled();
      await act(stopSignal());
    } finally {
      unlock();
    }
  });
}

/** Failures that a person can mend are one line; others keep their stack. */
async function guarded(act: () => Promise<void>): Promise<void> {
  try {
    await act();
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

/** Seconds between two heartbeats, as milliseconds: three that are missed freeze a job. */
export function everyMs(text: string): number {
  const seconds = /^[0-9]{1,2}$/.test(text) ? Number(text) : 0;
  if (seconds >= 1 && seconds <= 60) return seconds * 1_000;
  throw new InvalidArgumentError("Expected a whole number from 1 to 60.");
}

/** @throws InvalidArgumentError, which commander makes a line of */
export function httpAddress(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol)) return url;
  throw new InvalidArgumentError("Expected an http or https address.");
}

/** A sentence beside the answer. */
export function notice(sentence: string): void {
  process.stderr.write(`${printable(sentence)}\n`);
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

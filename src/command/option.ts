/** Options that commands share, and what their help has in common. */
import { readFileSync } from "node:fs";
import { Command, InvalidArgumentError } from "commander";
import type { z } from "zod";
import { readSurroundings } from "../config.ts";
import type { Api } from "./api.ts";
import { CommandError } from "./failure.ts";
import { DATA_DEFAULT } from "./folder.ts";

export interface ServerOptions {
  server?: string;
  token?: string;
  json?: true;
}

export interface DataOptions {
  data?: string;
  json?: true;
}

/** A command that goes through the service. */
export function serverCommand(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .option("--server <url>", "the service's address (default: MINUTEBOOK_SERVER)")
    .option("--token <jwt>", "a bearer token (default: MINUTEBOOK_TOKEN)")
    .option("--json", "print one JSON document");
}

/** A command that goes to the database; `variable` is the one that names it elsewhere. */
export function dataCommand(name: string, description: string, variable: string): Command {
  return new Command(name)
    .description(description)
    .option(
      "--data <folder>",
      `the data folder of an embedded database (default: ${variable}, else "${DATA_DEFAULT}")`,
    )
    .option("--json", "print one JSON document");
}

/** A command that only has others below it. */
export function group(name: string, description: string, commands: readonly Command[]): Command {
  const made = new Command(name).description(description);
  for (const command of commands) made.addCommand(command);
  return made;
}

export const DONE_OR_NOT = "0 done, 1 refused, 2 could not be asked";

export function example(call: string, statuses: string = DONE_OR_NOT): string {
  return `\nExample:\n  $ minutebook ${call}\n\nExit status: ${statuses}.`;
}

/** @throws CommandError `no-server`, `no-token` */
export function apiOf(options: ServerOptions): Api {
  const surroundings = readSurroundings();
  const server = options.server ?? surroundings.server;
  const token = options.token ?? surroundings.token;
  if (server === undefined || !URL.canParse(server)) {
    throw new CommandError("no-server", "say --server <url>, or set MINUTEBOOK_SERVER");
  }
  if (token === undefined) {
    throw new CommandError("no-token", "say --token <jwt>, or set MINUTEBOOK_TOKEN");
  }
  return { server, token };
}

/** For options that may come again. */
export function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

/** A day, or an instant with its zone, as the log writes it: UTC with milliseconds. */
export function instant(text: string): string {
  const at = /^\d{4}-\d{2}-\d{2}(?:T.*(?:Z|[+-]\d{2}:\d{2}))?$/.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(at))
    throw new InvalidArgumentError(
      "Expected a day or an instant with its zone, such as 2026-11-01 or 2026-11-01T08:00:00Z.",
    );
  return new Date(at).toISOString();
}

const SOON_MS = 60_000;

/** A rule that replaces another has to start after it is written, by the service's clock. */
export function soon(): string {
  return new Date(Date.now() + SOON_MS).toISOString();
}

/** `2026-11` or `2026-11-01`, as the API takes it. */
export function month(text: string): string {
  if (!/^\d{4}-(?:0[1-9]|1[0-2])(?:-01)?$/.test(text)) {
    throw new InvalidArgumentError("Expected a month such as 2026-11.");
  }
  return `${text.slice(0, 7)}-01`;
}

export function positive(max: number): (text: string) => number {
  return (text) => {
    const value = /^[0-9]{1,9}$/.test(text) ? Number(text) : 0;
    if (value >= 1 && value <= max) return value;
    throw new InvalidArgumentError(`Expected a whole number from 1 to ${max}.`);
  };
}

/** @throws CommandError `unreadable-file`, naming the members that do not fit */
export function readJsonFile<T extends z.ZodType>(file: string, shape: T): z.infer<T> {
  const { data, error, success } = shape.safeParse(parse(file));
  if (success) return data;
  const members = error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new CommandError("unreadable-file", `${file}: ${members.join("; ")}`);
}

function parse(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    const reason = error instanceof Error ? error.message : "";
    throw new CommandError("unreadable-file", `${file}: ${reason}`, { cause: error });
  }
}

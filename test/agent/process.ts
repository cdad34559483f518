/** Runs the agent's commands in a child process. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { compiled } from "../compile.ts";

const CLI = compiled(new URL("./cli.ts", import.meta.url));

/** @param limit a command that runs its arguments under a limit, as `prlimit` does */
export function agentProcess(
  args: string[],
  limit: string[] = [],
): ChildProcessByStdio<Writable, Readable, Readable> {
  const [command = "", ...rest] = [...limit, process.execPath, ...[CLI, "agent", ...args]];
  return spawn(command, rest, { stdio: "pipe" });
}

export interface Ended {
  status: number | null;
  stdout: string;
  stderr: string;
}

export async function runAgent(
  args: string[],
  { limit, input = "" }: { limit?: string[]; input?: string } = {},
): Promise<Ended> {
  const child = agentProcess(args, limit);
  child.stdin.end(input);
  const [stdout, stderr, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  return { status, stdout, stderr };
}

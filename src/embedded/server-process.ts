/** A server that we start and that does not outlive us, whatever its program. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { open, stat } from "node:fs/promises";
import net from "node:net";
import type { Account } from "./account.ts";

export interface ServerProcess {
  pid: number | undefined;
  /** Resolves when the process is gone. */
  ended: Promise<void>;
  /** By the gentle signal; by the harder one if it takes too long. */
  stop(): Promise<void>;
  /** kill -9. */
  kill(): Promise<void>;
}

/** Nothing of ours: no PG* variable, no locale, no proxy, no secret. */
export const SERVER_ENVIRONMENT = { PATH: "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };

const STOPPING_MS_MAX = 60_000;
const LOG_END_BYTES = 4_096;

/**
 * The guard is a shell that reads from a pipe whose other end only we hold. However we end, by
 * kill -9 too, the pipe closes, and the guard stops the server. Both have a process group of their
 * own: Ctrl-C in the terminal is for us, who stop the server last.
 */
const GUARD = 'read -r nothing; kill -s "$1" "$0"';

/**
 * @param options.log takes what the server writes to either output
 * @param options.gentle without its SIG: what the guard sends too
 */
export function spawnGuarded(
  binary: string,
  args: readonly string[],
  options: {
    account: Account;
    cwd: string;
    log: string;
    gentle: "INT" | "TERM";
    hard: "QUIT" | "KILL";
  },
): ServerProcess {
  const { account, cwd, gentle, hard, log } = options;
  const common = { ...account, cwd, env: SERVER_ENVIRONMENT, detached: true };
  const output = openSync(log, "a", 0o600);
  const server = spawn(binary, args, { ...common, stdio: ["ignore", output, output] });
  const guard = spawn("/bin/sh", ["-c", GUARD, String(server.pid), gentle], {
    ...common,
    stdio: ["pipe", "ignore", "ignore"],
  });
  closeSync(output);
  const ended = new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.once("exit", resolve);
  }).finally(() => {
    guard.kill("SIGKILL");
  });
  // A program that is done may end: the guard sees to the rest.
  server.unref();
  guard.unref();
  const kill = async () => {
    server.kill("SIGKILL");
    await ended;
  };
  const stop = async () => {
    server.kill(`SIG${gentle}`);
    const late = setTimeout(() => server.kill(`SIG${hard}`), STOPPING_MS_MAX);
    await ended;
    clearTimeout(late);
  };
  return { pid: server.pid, ended, stop, kill };
}

/** 0 while there is no log yet. */
export async function sizeOf(log: string): Promise<number> {
  return await stat(log).then(
    (found) => found.size,
    () => 0,
  );
}

/** The last 4 KiB of a log, but nothing from before a position. */
export async function readEnd(log: string, from: number): Promise<string> {
  const file = await open(log);
  try {
    const { size } = await file.stat();
    const position = Math.max(from, size - LOG_END_BYTES);
    const { buffer, bytesRead } = await file.read({
      buffer: Buffer.alloc(LOG_END_BYTES),
      position,
    });
    return buffer.toString("utf8", 0, bytesRead).trim();
  } finally {
    await file.close();
  }
}

/** Free when asked; whoever takes it first has it, so the caller tries again. */
export async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("freePort: no TCP address");
  return address.port;
}

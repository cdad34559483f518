/** The service as a process of its own: only so can the story kill it for real. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { extname } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { environmentWith } from "../../config.ts";

/** Run as we are: compiled, or from the sources by a loader. */
const KIND = extname(import.meta.url);
const MAIN = fileURLToPath(new URL(`../../main${KIND}`, import.meta.url));
const AUDIT = fileURLToPath(new URL(`../../../audit/cli${KIND}`, import.meta.url));

export interface ServiceProcess {
  url: string;
  /** Graceful: what is in flight is answered and sealed, then everything it started ends. */
  stop(): Promise<void>;
  /** kill -9, at once. */
  kill(): Promise<void>;
  /** Resolves when the process is gone, whoever ended it. */
  ended: Promise<void>;
}

/** @throws Error with what the process wrote if it ended before it was ready */
export async function startService(data: string, port: number): Promise<ServiceProcess> {
  const child = spawn(
    process.execPath,
    [...process.execArgv, MAIN, "serve", "--data", data, "--port", String(port), "--json"],
    // Last month is closed on whatever day this is told, also on the first ones of the next.
    { stdio: ["ignore", "pipe", "pipe"], env: environmentWith({ CLOSE_DELAY_DAYS: "0" }) },
  );
  const ended = once(child, "exit").then(() => undefined);
  return { url: await ready(child), ...ending(child, ended), ended };
}

function ending(child: ChildProcess, ended: Promise<void>) {
  const end = async (signal: "SIGTERM" | "SIGKILL"): Promise<void> => {
    child.kill(signal);
    await ended;
  };
  return { stop: () => end("SIGTERM"), kill: () => end("SIGKILL") };
}

/** The first line that names an address; log lines come on the other stream. */
async function ready(child: ChildProcess): Promise<string> {
  if (child.stdout === null || child.stderr === null) throw new Error("service: no pipes");
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => {
    errors = (errors + chunk.toString("utf8")).slice(-4_000);
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const url = urlIn(line);
    if (url !== undefined) return url;
  }
  throw new Error(`the service ended before it was ready:\n${errors}`);
}

function urlIn(line: string): string | undefined {
  try {
    const { url } = JSON.parse(line) as { url?: unknown };
    return typeof url === "string" ? url : undefined;
  } catch {
    return undefined;
  }
}

export interface Finished {
  status: number | null;
  output: string;
}

/** One of our own commands, run to its end; `status` is its exit status. */
export async function runCommand(
  program: "minutebook" | "minutebook-audit",
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  const script = program === "minutebook" ? MAIN : AUDIT;
  const child = spawn(process.execPath, [...process.execArgv, script, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: environmentWith(environment),
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString("utf8");
  });
  const [status] = (await once(child, "close")) as [number | null];
  return { status, output };
}

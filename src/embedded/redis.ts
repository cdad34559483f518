/**
 * A Redis of our own, where this machine has the program: it keeps live usage for as long as we run,
 * and nothing after. One that ends before us is started again where it was, so that its clients come back to it.
 *
 *     FOLDER/redis.conf   port and password of the last start (mode 0600)
 *     FOLDER/redis.log
 */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import net from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort, readEnd, type ServerProcess, sizeOf, spawnGuarded } from "./server-process.ts";

export interface EmbeddedRedis {
  /** With its password: for nobody's eyes. */
  url: string;
  stop(): Promise<void>;
  /** kill -9 of the server, for tests: it is started again. */
  kill9(): Promise<void>;
}

const VERSION_MIN = 6;
/**
 * A quarter of a million namespaces with a running job each (0.9 kB, MEMORY USAGE of Redis 7.0), or two million
 * jobs in few. Beyond it writes fail, which is seen; evicted usage would not be.
 */
const MEMORY = "256mb";
const STARTING_MS_MAX = 10_000;
const ANSWER_MS_MAX = 1_000;
const POLL_MS = 10;
const AGAIN_MS = 1_000;

/**
 * Starts the server of a folder that is this process's alone, and ends one that a killed process
 * left there. Undefined, and said in one line, where there is none to be had: live usage has a
 * second place, in our own memory.
 *
 * @param options.folder made if missing
 * @param options.log gets the line
 * @param options.program a name on the PATH, or a path
 */
export async function startRedis(options: {
  folder: string;
  log: (line: string) => void;
  program?: string;
}): Promise<EmbeddedRedis | undefined> {
  const { folder, log, program = "redis-server" } = options;
  const without = (reason: string): undefined => {
    log(`live usage is kept in this process: ${reason}`);
  };
  const found = findProgram(program);
  if ("lacking" in found) return without(found.lacking);
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o700);
  await endOld(folder);
  const deadline = Date.now() + STARTING_MS_MAX;
  for (;;) {
    const place = { port: await freePort(), password: randomBytes(24).toString("base64url") };
    const outcome = await launch(found.path, folder, place);
    if (typeof outcome !== "string") {
      const url = `redis://:${place.password}@127.0.0.1:${place.port}`;
      return { url, ...keepUp(outcome, { folder, log, place, program: found.path }) };
    }
    // The port was taken since.
    if (outcome.includes("Address already in use") && Date.now() < deadline) continue;
    return without(`${found.path} ended before it was ready: ${outcome.split("\n").at(-1)}`);
  }
}

/**
 * Others may have its port by now, as long as they like: it is tried again until it is stopped, or its folder
 * is another process's.
 */
function keepUp(
  first: ServerProcess,
  where: { program: string; folder: string; place: Place; log: (line: string) => void },
): Pick<EmbeddedRedis, "stop" | "kill9"> {
  const { folder, log, place, program } = where;
  let server = first;
  let replaced = Promise.resolve();
  const ending = new AbortController();
  const isWanted = (): boolean => !ending.signal.aborted;
  const isOurs = async (): Promise<boolean> => {
    const found = await findPlace(folder).catch(() => undefined);
    return isWanted() && found?.password === place.password;
  };
  const replace = async (): Promise<void> => {
    while (isWanted()) {
      // A full disk is as passing a reason as a port that is taken.
      const outcome = await launch(program, folder, place).catch(String);
      if (typeof outcome !== "string") {
        server = outcome;
        return;
      }
      const { signal } = ending;
      await delay(AGAIN_MS, undefined, { ref: false, signal }).catch(() => undefined);
    }
  };
  const watch = async (): Promise<void> => {
    for (;;) {
      await server.ended.catch(() => undefined);
      if (!(await isOurs())) return;
      log("redis-server ended by itself and is started again; heartbeats bring what it held");
      replaced = replace();
      await replaced;
      if (!isWanted()) return await server.stop();
    }
  };
  const watching = watch();
  return {
    stop: async () => {
      ending.abort();
      await Promise.all([server.stop(), watching]);
    },
    // Clients reach the next one before it is known here.
    kill9: async () => {
      await replaced;
      await server.kill();
    },
  };
}

/** By the shell's search of the PATH: the server itself gets none of our environment. */
function findProgram(name: string): { path: string } | { lacking: string } {
  const shell = spawnSync("/bin/sh", ["-c", 'command -v "$0"', name], { encoding: "utf8" });
  const path = shell.stdout.trim();
  if (shell.status !== 0) return { lacking: `no ${name} on the PATH` };
  const { stdout } = spawnSync(path, ["--version"], { encoding: "utf8" });
  const [, major] = /\bv=(\d+)\./.exec(stdout) ?? [];
  if (Number(major) >= VERSION_MIN) return { path };
  return { lacking: `${path} is no Redis ${VERSION_MIN} or newer` };
}

interface Place {
  port: number;
  password: string;
}

/** No persistence: an old state is worth less than none, the next heartbeats bring the present one. */
function configuration({ password, port }: Place): string {
  const lines = [
    "bind 127.0.0.1",
    `port ${port}`,
    `requirepass ${password}`,
    'save ""',
    "appendonly no",
    "databases 1",
    `maxmemory ${MEMORY}`,
    "maxmemory-policy noeviction",
  ];
  return `${lines.join("\n")}\n`;
}

const CONFIGURATION = "redis.conf";

async function findPlace(folder: string): Promise<Place | undefined> {
  const text = await readFile(join(folder, CONFIGURATION), "utf8").catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
    },
  );
  const [, port, password] = /^port (\d+)\nrequirepass (\S+)$/m.exec(text ?? "") ?? [];
  return port === undefined || password === undefined
    ? undefined
    : { port: Number(port), password };
}

/**
 * Its guard ends it when its launcher is killed; this is for when both were. Only ours knows the
 * password, so that nobody else's server is told to go; and a password that somebody else hears is
 * that of a server that is no more.
 */
async function endOld(folder: string): Promise<void> {
  const place = await findPlace(folder);
  if (place === undefined) return;
  // First, so that whoever launched it does not start it again.
  await rm(join(folder, CONFIGURATION));
  await say(place, "SHUTDOWN NOSAVE");
}

/** Returns the running server, or what it wrote to its log before it ended. */
async function launch(path: string, folder: string, place: Place): Promise<ServerProcess | string> {
  const [file, log] = [join(folder, CONFIGURATION), join(folder, "redis.log")];
  await writeFile(file, configuration(place), { mode: 0o600 });
  const before = await sizeOf(log);
  // As ourselves: it writes no file, and listens to nobody who lacks the password.
  const server = spawnGuarded(path, [file], {
    ...{ account: {}, cwd: folder, log },
    ...{ gentle: "TERM", hard: "KILL" },
  });
  const deadline = Date.now() + STARTING_MS_MAX;
  for (;;) {
    const ended = server.ended.then(() => true);
    if (await Promise.race([ended, delay(POLL_MS, false)])) return readEnd(log, before);
    if ((await say(place, "PING")).includes("+PONG")) return server;
    if (Date.now() > deadline) await server.stop();
  }
}

/** What is answered until that is whole or the connection ends; empty where nobody listens. */
async function say({ password, port }: Place, command: string): Promise<string> {
  const connection = net.connect(port, "127.0.0.1").setEncoding("utf8");
  const late = setTimeout(() => connection.destroy(), ANSWER_MS_MAX);
  let answer = "";
  try {
    connection.write(`AUTH ${password}\r\n${command}\r\n`);
    for await (const more of connection) {
      answer += String(more);
      if (answer.split("\r\n").length > 2) break;
    }
  } catch {
    // Nobody there, or gone before it answered, as after a shutdown.
  } finally {
    clearTimeout(late);
    connection.destroy();
  }
  return answer;
}

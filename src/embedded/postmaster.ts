/** One server process: finding a live one, starting, guarding and stopping ours. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import net from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import type { Cluster } from "./cluster.ts";
import { EmbeddedError } from "./failure.ts";
import { freePort, readEnd, type ServerProcess, sizeOf, spawnGuarded } from "./server-process.ts";

export interface Postmaster extends ServerProcess {
  port: number;
}

/** How long a server is given that is going, or whose launcher was just killed. */
const LEAVING_MS_MAX = 60_000;
const READY_LEAVING_MS_MAX = 2_000;
/** Recovery after a crash replays at most `max_wal_size`; this is for disks that are very slow. */
const STARTING_MS_MAX = 600_000;
const POLL_MS = 10;

/** Durable and for two cores; what is not here is PostgreSQL's default, fsync among it. */
const SETTINGS: Record<string, string> = {
  listen_addresses: "127.0.0.1",
  max_connections: "200",
  shared_buffers: "256MB",
  max_wal_size: "2GB",
  checkpoint_timeout: "15min",
  jit: "off",
  timezone: "UTC",
  log_timezone: "UTC",
  log_line_prefix: "%m [%p] %u@%d ",
};

/**
 * Starts the server of a cluster and waits until it takes connections, through recovery if it was
 * killed. Throws `data-folder-in-use` if a live server has the folder, `start-failed` otherwise.
 */
export async function startPostmaster(
  binary: string,
  cluster: Cluster,
  settings: Record<string, string>,
): Promise<Postmaster> {
  const deadline = Date.now() + LEAVING_MS_MAX;
  for (;;) {
    await untilFree(cluster.data);
    const port = await freePort();
    const outcome = await launch(binary, cluster, port, settings);
    if (typeof outcome !== "string") return outcome;
    // The port was taken since; or what a killed postmaster left behind is still ending.
    const passing = /Address already in use|pre-existing shared memory|lock file ".*" already/;
    if (!passing.test(outcome) || Date.now() > deadline) {
      throw new EmbeddedError("start-failed", `it ended before it was ready:\n${outcome}`);
    }
    await delay(POLL_MS);
  }
}

/** Throws `data-folder-in-use` if a live server has the cluster in this data folder. */
export async function untilFree(data: string): Promise<void> {
  const start = Date.now();
  for (;;) {
    const found = await findPostmaster(data);
    if (found === undefined) return;
    // "ready": its launcher may have been killed a moment ago, and its guard is about to act.
    const patience = found.status === "stopping" ? LEAVING_MS_MAX : READY_LEAVING_MS_MAX;
    if (Date.now() - start > patience) {
      const where = found.here ? "" : " of another container";
      const message = `${data} is in use by a live server, process ${found.pid}${where}; stop it first`;
      throw new EmbeddedError("data-folder-in-use", message);
    }
    await delay(POLL_MS);
  }
}

/** The port of the live server of a data folder; undefined where none takes connections. */
export async function portOf(data: string): Promise<number | undefined> {
  const found = await findPostmaster(data);
  return found?.here && found.status === "ready" ? found.port : undefined;
}

interface Noted {
  pid: number;
  port: number;
  /** The folder of its unix socket, as it is called where the server runs. */
  socket: string;
  status: string;
}

/** What postmaster.pid says, true or not: line 1 the process, 4 the port, 5 the socket's folder, 8 the status. */
async function readPidFile(data: string): Promise<Noted | undefined> {
  const text = await readFile(join(data, "postmaster.pid"), "utf8").catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
    },
  );
  const lines = text?.split("\n");
  const pid = Number(lines?.[0]);
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  const [port, socket, status] = [lines?.[3], lines?.[4], lines?.[7]];
  return { pid, port: Number(port), socket: socket ?? "", status: status?.trim() ?? "" };
}

/** `here`: its process can be seen; else it runs in another container that shares the folder. */
interface Found extends Noted {
  here: boolean;
}

/**
 * The live server of a data folder. A pid alone proves nothing: after a crash, and in a container even
 * regularly, it is somebody else's by now; and a server in another container has none that is seen here.
 *
 * @throws EmbeddedError `data-folder-in-use` where nothing tells whether the lock is stale
 */
async function findPostmaster(data: string): Promise<Found | undefined> {
  const noted = await readPidFile(data);
  if (noted === undefined) return undefined;
  const command = await commandLine(noted.pid);
  if (command.includes(`-D ${data} `)) return { ...noted, here: true };
  const socket = await knock(data, noted);
  if (socket === "answers") return { ...noted, here: false };
  // Without a process of this number PostgreSQL goes by its own rules.
  if (command === "") return undefined;
  const lock = join(data, "postmaster.pid");
  if (socket === "absent") {
    const message = `${lock} names process ${noted.pid}, which is another program; if no other container has the folder, remove that file`;
    throw new EmbeddedError("data-folder-in-use", message);
  }
  // PostgreSQL itself would take the stranger for its own and refuse. Its second guard, the shared
  // memory segment named after the folder's inode, stays.
  await rm(lock, { force: true });
  return undefined;
}

/**
 * Whether a server listens on the socket that it noted, whatever can be seen of its process. After a
 * crash the file is there and nobody listens. A folder that is shared may be called otherwise there.
 */
async function knock(
  data: string,
  { port, socket }: Noted,
): Promise<"answers" | "silent" | "absent"> {
  const folders = [socket, join(dirname(data), "socket")].filter((folder) => folder !== "");
  const codes = await Promise.all(
    folders.map((folder) => connectionError(join(folder, `.s.PGSQL.${port}`))),
  );
  if (codes.some((code) => code === undefined || !GONE.includes(code))) return "answers";
  return codes.includes("ECONNREFUSED") ? "silent" : "absent";
}

/** Any other failure, such as a full queue, is a sign of life. */
const GONE = ["ECONNREFUSED", "ENOENT", "ENOTDIR"];

async function connectionError(path: string): Promise<string | undefined> {
  const connection = net.connect(path);
  try {
    await once(connection, "connect");
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  } finally {
    connection.destroy();
  }
}

/** Empty for a process that is not there, or dead and not yet buried. */
async function commandLine(pid: number): Promise<string> {
  const read = existsSync("/proc/self/cmdline")
    ? readFile(`/proc/${pid}/cmdline`, "utf8").then((text) => text.replaceAll("\0", " "))
    : promisify(execFile)("ps", ["-ww", "-o", "command=", "-p", String(pid)]).then((p) => p.stdout);
  return read.catch(() => "");
}

/** Returns the running server, or what it wrote to its log before it ended. */
async function launch(
  binary: string,
  cluster: Cluster,
  port: number,
  settings: Record<string, string>,
): Promise<Postmaster | string> {
  const { account, data, log, socket } = cluster;
  const before = await sizeOf(log);
  const all = {
    ...SETTINGS,
    port: String(port),
    unix_socket_directories: socket,
    unix_socket_permissions: "0700",
    ...settings,
  };
  const flags = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const postmaster = spawnGuarded(binary, ["-D", data, ...flags], {
    ...{ account, cwd: "/", log },
    // Sessions end, everything committed is on the disk. The hard way loses nothing either: the next start recovers.
    ...{ gentle: "INT", hard: "QUIT" },
  });
  const deadline = Date.now() + STARTING_MS_MAX;
  for (;;) {
    const ended = postmaster.ended.then(() => true);
    if (await Promise.race([ended, delay(POLL_MS, false)])) return readEnd(log, before);
    const noted = await readPidFile(data);
    if (noted?.status === "ready" && noted.pid === postmaster.pid) return { ...postmaster, port };
    if (Date.now() > deadline) await postmaster.stop();
  }
}

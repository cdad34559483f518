/**
 * Real Redis for tests: a server, or a Cluster of three masters with a replica each, to kill, to stop and to
 * fail over. On free ports, in folders of their own that `stop` removes.
 */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";
import {
  freePort,
  readEnd,
  type ServerProcess,
  sizeOf,
  spawnGuarded,
} from "../src/embedded/server-process.ts";

export interface RedisServer {
  url: string;
  port: number;
  folder: string;
  /** SIGKILL resolves when it is gone; any other signal at once. */
  kill(signal: "SIGKILL" | "SIGSTOP" | "SIGCONT"): Promise<void>;
  /** Ends it if it runs, and starts it on the same port: what it saved it has again. */
  restart(): Promise<void>;
  /** Ends it and removes its folder. */
  stop(): Promise<void>;
  /** One command on a connection of its own. */
  say(command: string, ...args: string[]): Promise<unknown>;
}

export interface RedisCluster {
  urls: string[];
  /** Of the masters' replicas, in their order. */
  masters: RedisServer[];
  replicas: RedisServer[];
  /** Kills a master; resolves when its replica has taken over for all. It is `masters[index]` from then on. */
  failover(index: number): Promise<void>;
  /** Makes the replica the master while the master goes on as its replica. */
  swap(index: number): Promise<void>;
  stop(): Promise<void>;
}

interface Options {
  /** As in redis.conf, `maxmemory` for example. */
  settings?: Record<string, string>;
}

/** Searched for here: a server is given no PATH of ours, and Homebrew's is in none of its own. */
const PROGRAM = spawnSync("which", ["redis-server"], { encoding: "utf8" }).stdout.trim();
const READY = "Ready to accept connections";
const TAKEN = "Address already in use";
const POLL_MS = 10;
const WAIT_MS_MAX = 30_000;
const ATTEMPTS_MAX = 5;
const MASTERS = 3;
const SLOTS = 16_384;

export async function startRedis(options: Options = {}): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), "minutebook-redis-"));
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await launch({ folder, port: await freePort(), settings: options.settings ?? {} });
    } catch (error) {
      if (attempt === ATTEMPTS_MAX || !String(error).includes(TAKEN)) throw error;
    }
  }
}

/** Its node files are written before it starts: nobody has to meet, and the slots are there. */
export async function startCluster(options: Options = {}): Promise<RedisCluster> {
  for (let attempt = 1; ; attempt += 1) {
    const plans = await Promise.all(Array.from({ length: 2 * MASTERS }, plan));
    const started = await Promise.allSettled(
      plans.map(async (own) => {
        await writeFile(join(own.folder, "nodes.conf"), nodesFile(plans, own));
        return await launch({ ...own, settings: { ...clusterSettings(own), ...options.settings } });
      }),
    );
    const nodes = started.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    const failed = started.find((each) => each.status === "rejected");
    if (failed === undefined) return await settled(nodes);
    await Promise.all(nodes.map((node) => node.stop()));
    if (attempt === ATTEMPTS_MAX || !String(failed.reason).includes(TAKEN)) throw failed.reason;
  }
}

/**
 * One in which nobody takes over by themselves: on a busy machine a node may say nothing for longer than those
 * allow who are to be replaced at once. It starts with their limit, because with a longer one it starts later.
 */
export async function startSteadyCluster(): Promise<RedisCluster> {
  const cluster = await startCluster();
  const nodes = [...cluster.masters, ...cluster.replicas];
  await Promise.all(
    nodes.map((node) => node.say("CONFIG", "SET", "cluster-node-timeout", "60000")),
  );
  return cluster;
}

interface Plan {
  id: string;
  folder: string;
  port: number;
  bus: number;
  place: number;
}

async function plan(_: unknown, place: number): Promise<Plan> {
  const folder = await mkdtemp(join(tmpdir(), "minutebook-redis-"));
  const [port, bus] = [await freePort(), await freePort()];
  return { id: randomBytes(20).toString("hex"), folder, port, bus, place };
}

function clusterSettings({ bus }: Plan): Record<string, string> {
  return {
    "cluster-enabled": "yes",
    "cluster-port": String(bus),
    "cluster-node-timeout": "1000",
    "cluster-replica-validity-factor": "0",
    // What the other masters hold is answered while one is being replaced.
    "cluster-require-full-coverage": "no",
    "repl-diskless-sync-delay": "0",
  };
}

/** The form in which a node keeps what it knows of all: the first three are the masters. */
function nodesFile(plans: readonly Plan[], own: Plan): string {
  const lines = plans.map(({ id, port, bus, place }) => {
    const master = plans[place - MASTERS];
    const role = master === undefined ? "master -" : `slave ${master.id}`;
    const first = Math.ceil((place * SLOTS) / MASTERS);
    const slots =
      master === undefined ? ` ${first}-${Math.ceil(((place + 1) * SLOTS) / MASTERS) - 1}` : "";
    const flags = id === own.id ? `myself,${role}` : role;
    const epoch = (place % MASTERS) + 1;
    return `${id} 127.0.0.1:${port}@${bus} ${flags} 0 0 ${epoch} connected${slots}`;
  });
  return `${lines.join("\n")}\nvars currentEpoch ${MASTERS} lastVoteEpoch 0\n`;
}

async function settled(nodes: readonly RedisServer[]): Promise<RedisCluster> {
  const masters = nodes.slice(0, MASTERS);
  const replicas = nodes.slice(MASTERS);
  const running = (): RedisServer[] => [...masters, ...replicas];
  /** Only who is followed by its replica has something to fail over to. */
  const isFollowed = async (master: RedisServer): Promise<boolean> =>
    String(await master.say("INFO", "replication")).includes("state=online");
  const isAgreed = async (node: RedisServer): Promise<boolean> =>
    String(await node.say("CLUSTER", "INFO")).includes("cluster_state:ok");
  const takeOver = async (index: number): Promise<void> => {
    const [master, replica] = [masters[index], replicas[index]];
    if (master === undefined || replica === undefined) throw new Error("redis: no such master");
    const port = `127.0.0.1:${replica.port}@`;
    await until(async () => {
      const others = running().filter((node) => node !== master);
      const seen = await Promise.allSettled(others.map((node) => node.say("CLUSTER", "NODES")));
      // One that was killed before has nothing to say.
      const texts = seen.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
      return texts.every((text) => {
        const line = String(text)
          .split("\n")
          .find((each) => each.includes(port));
        return line !== undefined && /\bmaster\b.* connected \d/.test(line);
      });
    });
    masters[index] = replica;
    replicas[index] = master;
  };
  await until(async () => (await Promise.all(masters.map(isFollowed))).every(Boolean));
  await until(async () => (await Promise.all(nodes.map(isAgreed))).every(Boolean));
  return {
    urls: nodes.map(({ url }) => url),
    masters,
    replicas,
    failover: async (index) => {
      await masters[index]?.kill("SIGKILL");
      await takeOver(index);
    },
    swap: async (index) => {
      await replicas[index]?.say("CLUSTER", "FAILOVER");
      await takeOver(index);
    },
    stop: async () => {
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

/** @throws Error with the end of its log if it ends before it is ready */
async function launch(options: {
  folder: string;
  port: number;
  settings: Record<string, string>;
}): Promise<RedisServer> {
  const { folder, port } = options;
  const settings = {
    port: String(port),
    bind: "127.0.0.1",
    save: "",
    appendonly: "no",
    ...options.settings,
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const start = async (): Promise<ServerProcess> => {
    const log = join(folder, "redis.log");
    await mkdir(folder, { recursive: true });
    const before = await sizeOf(log);
    const server = spawnGuarded(PROGRAM, args, {
      ...{ account: {}, cwd: folder, log },
      ...{ gentle: "TERM", hard: "KILL" },
    });
    let ended = false;
    void server.ended.then(() => {
      ended = true;
    });
    await until(async () => {
      const text = await readEnd(log, before);
      if (ended) throw new Error(`redis: ended: ${text}`);
      return text.includes(READY);
    });
    return server;
  };
  let server = await start();
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    folder,
    kill: async (signal) => {
      if (signal === "SIGKILL") await server.kill();
      else process.kill(server.pid ?? 0, signal);
    },
    restart: async () => {
      await server.kill();
      server = await start();
    },
    stop: async () => {
      // By the hard signal: one that was stopped with SIGSTOP hears no other, and nothing is to be saved.
      await server.kill();
      await rm(folder, { recursive: true, force: true });
    },
    say: async (command, ...words) => {
      const client = new Redis({
        port,
        lazyConnect: true,
        retryStrategy: null,
        commandTimeout: 5_000,
      });
      client.on("error", () => undefined);
      try {
        await client.connect();
        return await client.call(command, ...words);
      } finally {
        client.disconnect();
      }
    },
  };
}

/** Asks again and again; what throws ends the waiting. */
async function until(isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + WAIT_MS_MAX;
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error("redis: waited in vain");
    await delay(POLL_MS);
  }
}

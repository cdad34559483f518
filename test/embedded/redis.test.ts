import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type EmbeddedRedis, startRedis } from "../../src/embedded/redis.ts";
import { compiled } from "../compile.ts";

// Each test has a folder of its own; what it started is stopped even if it fails.
let folder: string;
let said: string[];
const servers: EmbeddedRedis[] = [];
const launchers: ChildProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "minutebook-redis-"));
  said = [];
});
afterEach(async () => {
  for (const launcher of launchers.splice(0)) launcher.kill("SIGKILL");
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  await rm(folder, { recursive: true });
});

async function start(): Promise<EmbeddedRedis> {
  const server = await startRedis({ folder, log: (line) => said.push(line) });
  if (server === undefined) throw new Error(said.join());
  servers.push(server);
  return server;
}

async function ask<T>(url: string, question: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  redis.on("error", () => undefined); // the question's own promise tells
  try {
    await redis.connect();
    return await question(redis);
  } finally {
    redis.disconnect();
  }
}

const answers = async (url: string): Promise<boolean> =>
  await ask(url, (redis) => redis.ping()).then(
    () => true,
    () => false,
  );
const gone = (url: string): Promise<boolean> =>
  vi.waitUntil(async () => !(await answers(url)), { timeout: 20_000 });

test("it is bounded, forgets nothing to make room, and writes nothing down", async () => {
  const { url } = await start();
  const settings = await ask(url, async (redis) => ({
    memory: await redis.config("GET", "maxmemory"),
    policy: await redis.config("GET", "maxmemory-policy"),
    saves: await redis.config("GET", "save"),
    appends: await redis.config("GET", "appendonly"),
    listens: await redis.config("GET", "bind"),
  }));
  expect(settings).toEqual({
    memory: ["maxmemory", String(256 * 1024 * 1024)],
    policy: ["maxmemory-policy", "noeviction"],
    saves: ["save", ""],
    appends: ["appendonly", "no"],
    listens: ["bind", "127.0.0.1"],
  });
  expect(said).toEqual([]);
});

test("who lacks the password is told nothing, and only we can read it", async () => {
  const { url } = await start();
  const stranger = net.connect(Number(new URL(url).port), "127.0.0.1");
  stranger.write("GET x\r\n");
  const [answer] = (await once(stranger, "data")) as [Buffer];
  stranger.destroy();
  expect(answer.toString("utf8")).toMatch(/^-NOAUTH/);
  const { mode } = await stat(join(folder, "redis.conf"));
  expect(mode & 0o077).toBe(0);
  expect((await stat(folder)).mode & 0o077).toBe(0);
});

test("stop leaves no server and no data, and the next one begins empty", async () => {
  const first = await start();
  await ask(first.url, (redis) => redis.set("x", "1"));
  await first.stop();
  expect(await answers(first.url)).toBe(false);
  expect((await readdir(folder)).sort()).toEqual(["redis.conf", "redis.log"]);
  const second = await start();
  expect(await ask(second.url, (redis) => redis.get("x"))).toBeNull();
});

test("one that is killed comes back at the same place, each time, and stays away after stop", async () => {
  const server = await start();
  const client = new Redis(server.url, { retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on("error", () => undefined); // it is to come back by itself
  try {
    for (let times = 1; times <= 2; times += 1) {
      await client.set("x", "1");
      await server.kill9();
      expect(await client.get("x")).toBeNull();
      expect(said).toHaveLength(times);
      expect(said.at(-1)).toMatch(/^redis-server ended by itself and is started again/);
    }
  } finally {
    client.disconnect();
  }
  await server.kill9();
  await server.stop();
  expect(await answers(server.url)).toBe(false);
  expect(await answers((await start()).url)).toBe(true);
  expect(await answers(server.url)).toBe(false);
});

/** Another Node process that starts a server, says where, and then stays. */
async function launch(): Promise<{ launcher: ChildProcess; url: string }> {
  const script = `
    const { startRedis } = await import(${JSON.stringify(compiled(new URL("../../src/embedded/redis.ts", import.meta.url)))});
    const { url } = await startRedis({ folder: ${JSON.stringify(folder)}, log: console.error });
    console.log(url);
    process.stdin.resume();
  `;
  const launcher = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  launchers.push(launcher);
  const [line] = (await once(launcher.stdout, "data")) as [Buffer];
  return { launcher, url: line.toString("utf8").trim() };
}

test("no server outlives its launcher that is killed with -9", async () => {
  const { launcher, url } = await launch();
  launcher.kill("SIGKILL");
  expect(await gone(url)).toBe(true);
});

test("one that was left behind is ended by the next start, and nothing else is", async () => {
  const { url: left } = await launch();
  const conf = await readFile(join(folder, "redis.conf"), "utf8");
  const stranger = await mkdtemp(join(tmpdir(), "minutebook-stranger-"));
  const other = await startRedis({ folder: stranger, log: (line) => said.push(line) });
  if (other === undefined) throw new Error(said.join());
  servers.push(other);
  // Its launcher lives, so that no guard ends it: only who reads its password can.
  expect(await answers((await start()).url)).toBe(true);
  expect(await gone(left)).toBe(true);
  // A port that somebody else has by now: not our password, so not ours to end.
  await writeFile(
    join(folder, "redis.conf"),
    conf.replace(/^port .*$/m, `port ${new URL(other.url).port}`),
  );
  await start();
  expect(await answers(other.url)).toBe(true);
  await rm(stranger, { recursive: true });
});

test.each([
  ["there is none", "no-such-redis-server", "no no-such-redis-server on the PATH"],
  ["what there is, is something else", "true", "is no Redis 6 or newer"],
])("where %s the service goes on without, and says so in one line", async (_, program, reason) => {
  const log = (line: string) => said.push(line);
  expect(await startRedis({ folder, log, program })).toBeUndefined();
  expect(said).toEqual([expect.stringContaining(reason)]);
  expect(said[0]).toMatch(/^live usage is kept in this process: /);
});

test("a server that does not start is no reason not to start, and its own words are said", async () => {
  const program = join(folder, "redis-server");
  const script =
    '#!/bin/sh\n[ "$1" = --version ] && echo "Redis server v=7.0.0" || echo "out of luck"\n';
  await writeFile(program, script, { mode: 0o755 });
  const log = (line: string) => said.push(line);
  expect(await startRedis({ folder, log, program })).toBeUndefined();
  expect(said).toEqual([expect.stringContaining("ended before it was ready: out of luck")]);
});

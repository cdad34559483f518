import { afterAll, beforeAll, expect, test } from "vitest";
import { openLiveUsage } from "../../src/command/live-quota.ts";
import { openRedisTrouble } from "../../src/command/redis-trouble.ts";
import type { RedisPlace } from "../../src/store/live-redis.ts";
import { openLog } from "../../src/telemetry.ts";
import { type RedisCluster, type RedisServer, startRedis, startSteadyCluster } from "../redis.ts";

let server: RedisServer;
let cluster: RedisCluster;
let port: string;

beforeAll(async () => {
  [server, cluster] = await Promise.all([
    startRedis({ settings: { requirepass: "sesame" } }),
    startSteadyCluster(),
  ]);
  port = String(server.port);
});
afterAll(() => Promise.all([server.stop(), cluster.stop()]));

const PASSWORD = "hunter2%40home";

/** What is logged of a Redis that this place does not lead to, up to the reason. */
async function said(place: RedisPlace, reason: string): Promise<string> {
  const lines: string[] = [];
  const log = openLog("info", { write: (line) => void lines.push(line) });
  const clock = { now: () => Date.now() };
  const live = await openLiveUsage({ redis: place, clock, log });
  try {
    await expect.poll(() => lines.join(""), { timeout: 10_000 }).toContain(reason);
    expect(live.state()).toBe("away");
  } finally {
    await live.close();
  }
  return lines.join("");
}

test.each([
  ["WRONGPASS", () => `redis://:${PASSWORD}@127.0.0.1:${port}`],
  ["WRONGPASS", () => `redis://minutebook:${PASSWORD}@127.0.0.1:${port}`],
  ["NOAUTH", () => `redis://127.0.0.1:${port}`],
  ["ENOTFOUND", () => `redis://:${PASSWORD}@redis.invalid:6379`],
  ["ECONNREFUSED", () => `redis://:${PASSWORD}@127.0.0.1:1`],
  ["ETIMEDOUT", () => `rediss://:${PASSWORD}@127.0.0.1:${port}`],
])(
  "a Redis that cannot be used is said with its reason, %s, and without its password",
  async (reason, url) => {
    const text = await said({ kind: "single", url: url() }, reason);
    expect(text).not.toContain("hunter2");
  },
);

test.each([
  ["WRONGPASS", () => cluster.urls.map((url) => url.replace("//", `//minutebook:${PASSWORD}@`))],
  ["cluster support disabled", () => [`redis://:sesame@127.0.0.1:${port}`]],
  ["ENOTFOUND", () => [`redis://:${PASSWORD}@redis.invalid:6379`]],
])(
  "a Cluster that cannot be used is said with its reason, %s, and without its password",
  async (reason, urls) => {
    const text = await said({ kind: "cluster", urls: urls() }, reason);
    expect(text).not.toContain("hunter2");
  },
);

/** A trouble, and the reasons that it logged. */
function watched(): { trouble: ReturnType<typeof openRedisTrouble>; reasons: () => string[] } {
  const lines: string[] = [];
  const log = openLog("info", { write: (line) => void lines.push(line) });
  const trouble = openRedisTrouble({ kind: "single", url: `redis://:${PASSWORD}@r.example` }, log);
  return {
    trouble,
    reasons: () => lines.map((line) => JSON.parse(line).err ?? "goes on"),
  };
}

test("each reason of an outage is said once, the newest, and eight at the most", () => {
  const { trouble, reasons } = watched();
  const look = (message: string): void => {
    trouble.refused(new Error(message));
    trouble.look(true);
  };
  for (const message of ["ECONNREFUSED", "LOADING", "ECONNREFUSED", "LOADING"]) look(message);
  expect(reasons()).toEqual(["ECONNREFUSED", "LOADING"]);
  for (let i = 0; i < 50; i += 1) look(`another ${i}`);
  expect(reasons()).toHaveLength(8);
  trouble.look(false);
  look("ECONNREFUSED");
  expect(reasons().slice(8)).toEqual(["goes on", "ECONNREFUSED"]);
});

test("a call that fails for want of a connection hides no reason, and one that was refused is one", () => {
  const { trouble, reasons } = watched();
  trouble.refused(new Error("WRONGPASS"));
  trouble.failed(new Error("Stream isn't writeable"), { connected: () => false });
  trouble.look(true);
  trouble.failed(new Error("NOPERM no permissions to run 'evalsha'"), { connected: () => true });
  trouble.look(true);
  expect(reasons()).toEqual(["WRONGPASS", "NOPERM no permissions to run 'evalsha'"]);
});

test("what a server repeats of a command is not said", () => {
  const { trouble, reasons } = watched();
  trouble.refused(new Error("ERR unknown command 'AUTH', with args beginning with: 'x' 'y'"));
  trouble.look(true);
  trouble.refused(new Error("bad hunter2@home and hunter2%40home"));
  trouble.look(true);
  expect(reasons()).toEqual(["ERR unknown command 'AUTH'", "bad *** and ***"]);
});

/** T46: what is decided while Redis is away, by each policy. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { QuotaConfig } from "../../src/config-quota.ts";
import { DECISION_AGE_MS, type Decision } from "../../src/flow/quota/decide.ts";
import { type RedisServer, startRedis } from "../redis.ts";
import { ask, type House, newLog, openHouse } from "./house.ts";
import { Desk } from "./quota-desk.ts";

interface Scene {
  redis: RedisServer;
  house: House;
  desk: Desk;
  /** Namespaces: ten minutes left, nothing left, paying for more, no limit, a job of four minutes. */
  names: Record<"free" | "over" | "paying" | "unlimited" | "running", string>;
}

async function open(withoutRedis: QuotaConfig["withoutRedis"]): Promise<Scene> {
  const redis = await startRedis();
  const place = { kind: "single", url: redis.url } as const;
  const house = await openHouse({ quota: { redis: place, withoutRedis, startReserveMs: 60_000 } });
  const desk = new Desk(house, await newLog(house, withoutRedis, 1));
  const names = {
    free: await desk.namespace({ monthly_minutes: "10" }),
    over: await desk.namespace({ monthly_minutes: "1", grace_minutes: "0" }),
    paying: await desk.namespace({ monthly_minutes: "10", beyond: "bill" }),
    unlimited: await desk.namespace({ monthly_minutes: "0" }),
    running: await desk.namespace({ monthly_minutes: "10", grace_minutes: "0" }),
  };
  await desk.report(names.over, "1", 2);
  await desk.beat(names.running, "2", 4);
  house.clock.time += DECISION_AGE_MS + 1;
  const scene = { redis, house, desk, names };
  await untilRedis(scene);
  await redis.kill("SIGKILL");
  return scene;
}

async function startIn({ desk }: Scene, namespace: string): Promise<Decision | undefined> {
  return (await desk.start(namespace, "9"))[0];
}

/** It is tried again a second after it failed. */
async function untilRedis(scene: Scene): Promise<void> {
  const isUp = async (): Promise<boolean> => {
    scene.house.clock.time += 1_001;
    return (await startIn(scene, scene.names.unlimited))?.source === "redis";
  };
  await vi.waitUntil(isUp, { timeout: 30_000 });
}

let scenes: Map<string, Scene>;

const POLICIES = [
  ["open", true, true],
  ["closed", false, false],
  ["plan", false, true],
] as const;

beforeAll(async () => {
  scenes = new Map();
  for (const [policy] of POLICIES) scenes.set(policy, await open(policy));
});
afterAll(async () => {
  for (const { house, redis } of scenes.values()) {
    await house.close();
    await redis.stop();
  }
});

function sceneOf(policy: string): Scene {
  const scene = scenes.get(policy);
  if (scene === undefined) throw new Error("no such scene");
  return scene;
}

test.each(POLICIES)(
  "T46: policy %s says who may start while Redis is killed, and the answer says whose it is",
  async (policy, free, paying) => {
    const scene = sceneOf(policy);
    const { names } = scene;
    const answers = [await startIn(scene, names.free), await startIn(scene, names.paying)];
    expect(answers.map((each) => each?.allowed)).toEqual([free, paying]);
    expect(answers.map((each) => each?.source)).toEqual(["process", "process"]);
    const refused = answers.filter((each) => each?.allowed === false);
    for (const each of refused) {
      expect(each).toMatchObject({ job_status: "failed", reason: "policy" });
    }
  },
);

test.each(POLICIES)(
  "T46: policy %s changes nothing of what is over, nor of what has no limit",
  async (policy) => {
    const scene = sceneOf(policy);
    const [over, free] = [scene.names.over, scene.names.unlimited];
    expect(await startIn(scene, over)).toMatchObject({ allowed: false, reason: "beyond" });
    expect(await startIn(scene, free)).toMatchObject({ allowed: true, reason: "unlimited" });
  },
);

test.each(POLICIES)(
  "T46: policy %s stops nobody who runs while anything is left, by what this process heard",
  async (policy) => {
    const { desk, names } = sceneOf(policy);
    expect(await desk.beat(names.running, "2", 5)).toMatchObject({
      allowed: true,
      source: "process",
      remaining_minutes: "5.0000",
    });
    expect(await desk.beat(names.running, "2", 11)).toMatchObject({
      job_status: "failed",
      reason: "beyond",
    });
  },
);

test("what never ran is to be said again while Redis is away, which would not hear of it", async () => {
  const { desk, house, names } = sceneOf("plan");
  const json = { jobs: [{ job_id: "2", namespace_id: names.running }] };
  const route = `POST /v1/logs/${desk.log}/never_ran`;
  const answered = await ask(house, route, { token: desk.token, json });
  expect([answered.status, answered.json["code"]]).toEqual([503, "busy"]);
});

test("when Redis is back, and empty, the next heartbeats bring it all that runs", async () => {
  const scene = sceneOf("plan");
  await scene.redis.restart();
  await untilRedis(scene);
  expect(await scene.desk.beat(scene.names.running, "2", 11)).toMatchObject({
    source: "redis",
    remaining_minutes: "-1.0000",
  });
});

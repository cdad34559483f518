import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Foundation, findGround, layFoundation } from "../../src/command/foundation.ts";
import { readConfig } from "../../src/config.ts";

let data: string;

beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), "minutebook-foundation-"));
});

afterAll(() => rm(data, { recursive: true }));

const isThere = (): boolean => existsSync(join(data, "redis"));

async function answers({ redis }: Foundation): Promise<boolean> {
  if (redis?.kind !== "single") throw new Error("no single Redis");
  const client = new Redis(redis.url, { lazyConnect: true, retryStrategy: () => null });
  client.on("error", () => undefined); // the promise tells
  try {
    await client.connect();
    return (await client.ping()) === "PONG";
  } catch {
    return false;
  } finally {
    client.disconnect();
  }
}

test("a folder has a Redis of its own only for a service that is told of no other", async () => {
  const told = await layFoundation(readConfig({ REDIS_URL: "redis://elsewhere" }), data, () => {});
  expect([told.redis, isThere()]).toEqual([undefined, false]);
  await told.stop();

  // What writes to logs while the service is down decides nothing.
  const ground = await findGround(readConfig({}), data, () => {});
  expect(isThere()).toBe(false);
  await ground.stop();

  const own = await layFoundation(readConfig({}), data, () => {});
  expect(await answers(own)).toBe(true);
  await own.stop();
  expect(await answers(own)).toBe(false);
});

/** How often anybody may ask, and what that does to whoever is honest. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { Client, SURROUNDINGS } from "../../src/agent/client.ts";
import { reported } from "../flow/door.ts";
import { heartbeatOf } from "./heartbeat.ts";
import { type Answered, ask, type House, newLog, openHouse, tokenOf } from "./house.ts";

let house: House;
let log: string;
/** With a key of its own. */
let second: string;

/** Set-up itself asks some ten times. */
beforeAll(async () => {
  house = await openHouse({ rates: { caller: 20, machine: 10, seconds: 1 } });
  ({ log } = await newLog(house, "limited", 1));
  second = (await newLog(house, "limited too", 2)).log;
});
afterAll(() => house.close());

/** Asked at once, and again: of some a busy machine may make so little in a second that nobody is held back. */
async function untilLimited(burst: () => Promise<Answered>[]): Promise<Answered[]> {
  const answers: Answered[] = [];
  const isLimited = async (): Promise<boolean> => {
    answers.push(...(await Promise.all(burst())));
    return answers.some(({ status }) => status === 429);
  };
  await vi.waitUntil(isLimited, { timeout: 30_000 });
  return answers;
}

test("who asks too often hears when to come again; nobody else is held back, and health never is", async () => {
  const token = await tokenOf(["auditor"]);
  const path = `GET /v1/logs/${log}/holds`;
  const answers = await untilLimited(() =>
    Array.from({ length: 80 }, () => ask(house, path, { token })),
  );
  const limited = answers.filter(({ status }) => status === 429);
  expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(20);
  for (const { json, headers } of limited) {
    expect(json).toMatchObject({ code: "rate-limited", retry_after_s: "1" });
    expect(headers.get("retry-after")).toBe("1");
  }
  expect((await ask(house, path, { token: await tokenOf(["finance"]) })).status).toBe(200);
  for (const open of ["GET /livez", "GET /readyz"]) {
    for (const { status } of await Promise.all(
      Array.from({ length: 60 }, () => ask(house, open)),
    )) {
      expect(status).toBe(200);
    }
  }
});

test("a key is held back by its own requests, and by nobody who writes its name on a forgery", async () => {
  const forged = (i: number) => {
    const jws = reported(2, second, { counter: String(i), job: { id: String(i) } });
    return `${jws.slice(0, -6)}AAAAAA`;
  };
  for (let i = 1; i <= 30; i += 1) {
    expect((await ask(house, "POST /v1/reports", { jose: forged(i) })).status).toBe(401);
  }
  const jose = reported(2, second, { counter: "900", job: { id: "900" } });
  expect((await ask(house, "POST /v1/reports", { jose })).status).toBe(201);
  await untilLimited(() =>
    Array.from({ length: 40 }, (_, i) =>
      ask(house, "POST /v1/heartbeats", { jose: heartbeatOf(2, second, [{ id: String(i) }]) }),
    ),
  );
});

test("an agent with a large backlog delivers all of it, since it comes again when it is told to", async () => {
  const pauses: number[] = [];
  const client = new Client({
    server: house.url,
    surroundings: SURROUNDINGS,
    onRetry: (_, ms) => pauses.push(ms),
  });
  const send = async (i: number): Promise<number> => {
    const body = reported(1, log, { counter: String(i), job: { id: String(i) } });
    return (await client.request("v1/reports", { type: "application/jose", body })).status;
  };
  // All at once: one after the other, a busy machine takes too long to be held back.
  const statuses: number[] = [];
  const isHeldBack = async (): Promise<boolean> => {
    const from = 1 + statuses.length;
    statuses.push(...(await Promise.all(Array.from({ length: 25 }, (_, i) => send(from + i)))));
    return pauses.length > 0;
  };
  await vi.waitUntil(isHeldBack, { timeout: 30_000 });
  expect(statuses).toEqual(statuses.map(() => 201));
  for (const ms of pauses) expect(ms).toBeGreaterThanOrEqual(1_000);
});

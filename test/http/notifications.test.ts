/** From a report to the receiver of webhooks and to the namespace's owner, through a whole service. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { reported } from "../flow/door.ts";
import { answering, Receiver, verified, whsec } from "../flow/quota/receiver.ts";
import { type Answered, ask, beside, type House, newLog, openHouse, tokenOf } from "./house.ts";

const SECRET = new Uint8Array(32).fill(5);
const SAID = "what the receiver says is its own";
const NOT_TAKEN = "the receiver of notifications did not take one: 500";

let house: House;
let folder: string;
let receiver: Receiver;
let log: string;
let token: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "minutebook-webhook-"));
  const secretFile = join(folder, "secret");
  await writeFile(secretFile, `${whsec(SECRET)}\n`, { mode: 0o600 });
  receiver = await new Receiver().listen();
  house = await openHouse({ webhook: { url: receiver.url, secretFile } });
  ({ log, token } = await newLog(house, "notifications", 1));
  const limit = { beyond: "stop", monthly_minutes: "2", source: "test", source_version: "1" };
  await ask(house, `PUT /v1/quotas/${log}/7`, { token, json: limit });
});
afterAll(async () => {
  await house.close();
  await receiver.close();
  await rm(folder, { recursive: true });
});

const use = (counter: number, ms: number): Promise<Answered> => {
  const usage = { duration_ms: String(ms) };
  const jose = reported(1, log, { counter: String(counter), job: { id: String(counter) }, usage });
  return ask(house, "POST /v1/reports", { jose });
};

type Listed = Record<string, unknown>[];

async function notifications(as = token, after = ""): Promise<Listed> {
  const path = `/v1/quotas/${log}/7/notifications${after && `?after=${after}`}`;
  return (await ask(house, `GET ${path}`, { token: as })).json["notifications"] as Listed;
}

test("who comes to a level is told by a signed webhook, and reads the same with how far it came", async () => {
  await use(1, 60_000);
  receiver.behaviours = [answering(500, { "content-type": "text/plain" }, SAID), answering(204)];
  await use(2, 45_000);
  await vi.waitUntil(() => house.logged.some((line) => line.includes(NOT_TAKEN)), 20_000);
  house.clock.time += 10_000;
  await vi.waitUntil(async () => (await notifications())[0]?.["state"] === "delivered", 20_000);
  const [first, again] = receiver.received;
  if (first === undefined || again === undefined) throw new Error("nothing came");
  const event = verified(SECRET, again) as Record<string, unknown>;
  expect(verified(SECRET, first)).toEqual(event);
  expect(again.id).toBe(first.id);
  expect(event).toMatchObject({
    type: "quota.warning",
    data: {
      log,
      namespace_id: "7",
      month: "2026-11-01",
      level: "warning",
      remaining_compute_ms: "15000.000000",
      remaining_minutes: "0.2500",
      limit_minutes: "2",
    },
  });
  expect(await notifications()).toEqual([
    {
      ...event,
      ...{ id: first.id, number: "1", state: "delivered", attempts: 2 },
      settled_at: new Date(house.clock.time).toISOString(),
    },
  ]);
  const metrics = (await ask(house, "GET /metrics", { token })).text;
  expect(metrics).toContain('minutebook_quota_notifications_total{event="quota.warning"} 1');
  expect(metrics).toContain('minutebook_webhook_deliveries_total{outcome="failed"} 1');
  expect(metrics).toContain('minutebook_webhook_deliveries_total{outcome="delivered"} 1');
});

test("neither the secret, nor the receiver's address, nor what it said is in the service's log", () => {
  const logged = house.logged.join("\n");
  expect(logged).toContain(NOT_TAKEN);
  for (const hidden of [SAID, whsec(SECRET), receiver.url]) expect(logged).not.toContain(hidden);
});

test("the owner of the namespace sees its notifications; of others, and of no log, it is 404", async () => {
  const owner = await tokenOf(["viewer"], { logs: [log], namespaces: ["7"] });
  expect(await notifications(owner)).toHaveLength(1);
  expect(await notifications(owner, "1")).toEqual([]);
  const path = "7/notifications";
  const status = async (as: string, of = log): Promise<number> =>
    (await ask(house, `GET /v1/quotas/${of}/${path}`, { token: as })).status;
  expect(await status(await tokenOf(["viewer"], { logs: [log], namespaces: ["8"] }))).toBe(404);
  expect(await status(await tokenOf(["viewer"], { logs: ["f".repeat(32)] }))).toBe(404);
  expect(await status(await tokenOf(["provisioner"]))).toBe(404);
  expect(await status(token, "f".repeat(32))).toBe(404);
});

test("a service whose webhook has no secret to sign with does not start", async () => {
  const webhook = { url: receiver.url, secretFile: join(folder, "none") };
  await expect(beside(house, undefined, { webhook })).rejects.toThrow("none: cannot be read");
});

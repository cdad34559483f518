import { afterAll, beforeAll, expect, test } from "vitest";
import { openNote } from "../../src/core/note.ts";
import { signersUnder } from "../flow/signer.ts";
import { policyOf, TestWitness } from "../flow/witness.ts";
import { testKey, verifyByOpenssl } from "../signing.ts";
import { ask, everybody, type House, newAgent, newLog, newLogOn, openHouse } from "./house.ts";

const { vkeyOf } = signersUnder("minutebook.localhost", testKey(32));
const witness = new TestWitness("ada", 61, vkeyOf);
const INTERVAL_MS = 1_000;
const SOON = { timeout: 30_000, interval: 50 };

let house: House;
beforeAll(async () => {
  await witness.listen();
  const witnessPolicy = policyOf([witness], 1);
  house = await openHouse({ witnessPolicy, witnessIntervalMs: INTERVAL_MS });
});
afterAll(async () => {
  await house.close();
  witness.close();
});

const anchors = async () => (await ask(house, "GET /readyz")).json["anchors"];

test("a log is published when its witness has cosigned it, and not before", async () => {
  witness.deviate = () => ({ status: 403, body: "" });
  const { log, token } = await newLog(house, "witnessed", 1);
  const checkpoint = () => ask(house, `GET /logs/${log}/checkpoint`, { token });
  await expect.poll(() => witness.asked.length, SOON).toBeGreaterThan(0);
  expect((await checkpoint()).status).toBe(404);
  expect(await anchors()).toMatchObject({ state: "none" });

  witness.deviate = (honest) => honest;
  house.clock.time += 20 * INTERVAL_MS;
  await expect.poll(async () => (await checkpoint()).status, SOON).toBe(200);
  const { text } = await checkpoint();
  const opened = openNote(text, [vkeyOf(log), witness.vkey], verifyByOpenssl);
  expect(opened).toMatchObject({ signatures: [{ vkey: vkeyOf(log) }, { vkey: witness.vkey }] });
  await expect.poll(anchors, SOON).toMatchObject({ state: "witnessed" });
  const metrics = (await ask(house, "GET /metrics", { token })).text;
  expect(metrics).toMatch(/minutebook_cosignatures_total\{witness="ada"\} [1-9]/);
  expect(metrics).toContain('minutebook_witness_refusals_total{witness="ada",reason="403"} 1');
  expect(metrics).toContain('minutebook_witness_lag_seconds{witness="ada"}');
  expect(house.logged.some((line) => line.includes("witness ada") && line.includes("403"))).toBe(
    true,
  );
});

test("a witness that has seen more than we have is said by /readyz, and logged as an error", async () => {
  const log = await newLogOn(house, await everybody(), "rolled back");
  const origin = `minutebook.localhost/${log}`;
  await expect.poll(() => witness.last.has(origin), SOON).toBe(true);
  witness.last.set(origin, { size: 1_000n, root: new Uint8Array(32) });
  await newAgent(house, log, 2);
  house.clock.time += INTERVAL_MS;
  await expect.poll(anchors, SOON).toMatchObject({ state: "witness-ahead" });
  const line = house.logged.find((text) => text.includes("1000") && text.includes(log));
  expect(JSON.parse(line ?? "{}")).toMatchObject({ level: 50, msg: "witness ada" });
  expect((await ask(house, "GET /readyz")).status).toBe(200);
});

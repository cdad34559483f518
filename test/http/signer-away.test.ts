/** A service whose keys are out of reach for a while. */
import { expect, onTestFinished, test, vi } from "vitest";
import { heldKeys } from "../../src/custody.ts";
import { reported } from "../flow/door.ts";
import { testKey } from "../signing.ts";
import { ask, newLog, openHouse, sealedSize } from "./house.ts";

test("while its signer is away a service says so, takes nothing, and goes on when it is back", async () => {
  const keys = heldKeys({
    checkpoint: [testKey(32).privateKey],
    receipt: [testKey(33).privateKey],
  });
  let away = false;
  const house = await openHouse({}, { ...keys, available: () => !away });
  onTestFinished(() => house.close());
  const { log } = await newLog(house, "away", 1);
  const size = await sealedSize(house, log);
  const readiness = async () => {
    const { status, json } = await ask(house, "GET /readyz");
    return [status, json["signer"]];
  };

  away = true;
  await vi.waitUntil(async () => (await readiness())[0] === 503, { timeout: 10_000 });
  expect(await readiness()).toEqual([503, "unavailable"]);
  const refused = await ask(house, "POST /v1/reports", { jose: reported(1, log) });
  expect([refused.status, refused.json["code"]]).toEqual([503, "signer-unavailable"]);
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(await sealedSize(house, log)).toBe(size);

  away = false;
  const taken = await ask(house, "POST /v1/reports", { jose: reported(1, log) });
  expect([taken.status, taken.json["receipt"]]).toEqual([201, expect.any(String)]);
  await vi.waitUntil(async () => (await readiness())[0] === 200, { timeout: 10_000 });
});

/** Keys change under a running service, and the auditor's own program follows with any one of them. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { formatVkey } from "../../src/core/note.ts";
import { command } from "../audit/command.ts";
import { minutebook } from "../command/terminal.ts";
import { reported } from "../flow/door.ts";
import { testKey } from "../signing.ts";
import { ask, type House, newLog, openHouse, sealedSize } from "./house.ts";

let house: House;
let log: string;
let token: string;

beforeAll(async () => {
  house = await openHouse();
  ({ log, token } = await newLog(house, "rotation", 1));
});
afterAll(() => house.close());

function vkeyOf(seed: number): string {
  return formatVkey(`minutebook.localhost/${log}`, testKey(seed).publicKey);
}

const FIRST = 32;
const NEXT = 34;
const STRANGER = 35;

async function change(state: "added" | "retired", seed: number): Promise<void> {
  const json = { purpose: "checkpoint", state, vkey: vkeyOf(seed) };
  const { status, text } = await ask(house, `POST /v1/logs/${log}/log_keys`, { token, json });
  expect([status, text]).toEqual([201, expect.any(String)]);
}

async function report(counter: number): Promise<void> {
  const jose = reported(1, log, { counter: String(counter), job: { id: String(counter) } });
  expect((await ask(house, "POST /v1/reports", { jose })).status).toBe(201);
  await sealedSize(house, log);
}

test("a log that went from one key to the next is proven by whoever has either, and by nobody else", async () => {
  await report(1);
  await change("added", NEXT);
  await report(2);
  await change("retired", FIRST);
  await report(3);
  const size = await sealedSize(house, log);
  for (const seed of [FIRST, NEXT]) {
    const { err, exit, out } = await command(
      "verify",
      house.archive,
      "--vkey",
      vkeyOf(seed),
      "--json",
    );
    expect({ err, exit, seed }).toEqual({ err: "", exit: 0, seed });
    expect(JSON.parse(out).logs).toMatchObject([{ log, size, exit: 0 }]);
  }
  const stranger = await command("verify", house.archive, "--vkey", vkeyOf(STRANGER));
  expect(stranger.exit).not.toBe(0);

  const keys = [FIRST, NEXT].flatMap((seed) => ["--vkey", vkeyOf(seed)]);
  const checked = await minutebook(["check", ...keys], {
    READER_DATABASE_URL: house.database.urls.reader,
  });
  expect([checked.status, checked.stdout]).toEqual([0, expect.stringMatching(/^PROVEN/)]);
});

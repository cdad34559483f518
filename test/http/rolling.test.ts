/** Processes that hold the keys in another order, as while a key is replaced, and the logs made meanwhile. */
import { expect, test } from "vitest";
import { openNote, parseVkey } from "../../src/core/note.ts";
import { readReceipt, verifyReceipt } from "../../src/core/receipt.ts";
import { heldKeys } from "../../src/custody.ts";
import type { HeldKeys } from "../../src/flow/key/standing.ts";
import { reported } from "../flow/door.ts";
import { testKey, verifyByOpenssl } from "../signing.ts";
import { ask, beside, everybody, type House, newAgent, openHouse, sealedSize } from "./house.ts";

const [OLD, NEW, OLD_RECEIPT, NEW_RECEIPT] = [32, 34, 33, 35];

interface Seeds {
  checkpoint: number[];
  receipt: number[];
  former?: { checkpoint: number; receipt: number };
}

function holding({ checkpoint, receipt, former }: Seeds): HeldKeys {
  const keys = (seeds: number[]) => seeds.map((seed) => testKey(seed).privateKey);
  return heldKeys({
    checkpoint: keys(checkpoint),
    receipt: keys(receipt),
    ...(former && {
      former: {
        checkpoint: testKey(former.checkpoint).privateKey,
        receipt: testKey(former.receipt).privateKey,
      },
    }),
  });
}

const BEFORE = holding({ checkpoint: [OLD], receipt: [OLD_RECEIPT] });
const BOTH = holding({ checkpoint: [OLD, NEW], receipt: [OLD_RECEIPT, NEW_RECEIPT] });
const REPLACED = holding({
  checkpoint: [NEW],
  receipt: [NEW_RECEIPT],
  former: { checkpoint: OLD, receipt: OLD_RECEIPT },
});
const AFTER = holding({ checkpoint: [NEW], receipt: [NEW_RECEIPT] });

interface Told {
  log: string;
  vkey: string;
  receipt_vkey: string;
}

const vkeyOf = (text: string) => {
  const vkey = parseVkey(text);
  if (vkey === undefined) throw new Error("no vkey");
  return vkey;
};

async function made(at: { url: string }, unique_id: string): Promise<Told> {
  const billing_from = "2026-01-01T00:00:00.000Z";
  const json = { unique_id, platform: "dotcom", billing_from, control: "single" };
  const answer = await ask(at, "POST /v1/logs", { token: await everybody(), json });
  expect(answer.status).toBe(201);
  return answer.json as unknown as Told;
}

/** What was told when the log was made is true of what every process shows, signs and takes. */
async function assertTrue(house: House, { log, vkey, receipt_vkey }: Told, seed: number) {
  const token = await everybody();
  await sealedSize(house, log);
  for (const [i, service] of [house, ...house.besides].entries()) {
    const { text } = await ask(service, `GET /logs/${log}/checkpoint`, { token });
    expect(openNote(text, [vkeyOf(vkey)], verifyByOpenssl)).toHaveProperty("text");
    const counter = String(i + 1);
    const reports = [reported(seed, log, { counter, job: { id: counter } })];
    const { json, status } = await ask(service, "POST /v1/reports", { json: { reports } });
    expect([status, json["code"]]).toEqual([200, undefined]);
    const receipt = readReceipt(String(json["receipt"]));
    expect(receipt && verifyReceipt(receipt, vkeyOf(receipt_vkey), verifyByOpenssl)).toBe(true);
    const listed = (await ask(service, "GET /v1/logs", { token })).json["logs"] as Told[];
    expect(listed.find((one) => one.log === log)).toMatchObject({ vkey, receipt_vkey });
    await sealedSize(house, log);
  }
}

const STEPS: [string, HeldKeys, HeldKeys][] = [
  ["some processes have the next key already", BEFORE, BOTH],
  ["in some the next key has become the current one", BOTH, REPLACED],
  ["some have let go of the former key", REPLACED, AFTER],
];

test.each(STEPS)(
  "while %s, a log is signed by the key that was told when it was made",
  async (_, earlier, later) => {
    const house = await openHouse({}, earlier);
    const other = await beside(house, later);
    try {
      const logs = [];
      for (let i = 0; i < 4; i += 1) {
        logs.push(await made(i % 2 === 0 && earlier !== REPLACED ? house : other, `log ${i}`));
      }
      for (const [i, told] of logs.entries()) {
        await newAgent(i < 2 ? house : other, told.log, i + 1);
        await assertTrue(house, told, i + 1);
      }
    } finally {
      await house.close();
    }
  },
);

test("a process that has let go of a key refuses the logs that are signed with it, and signs nothing else", async () => {
  const house = await openHouse({}, BOTH);
  try {
    const { log, vkey } = await made(house, "left out");
    await newAgent(house, log, 1);
    const other = await beside(house, AFTER);
    const refused = await ask(other, "POST /v1/reports", { jose: reported(1, log) });
    expect(refused.json).toMatchObject({ status: 503, code: "signer-unavailable" });
    // Held, since there is no card: an entry like any other.
    expect((await ask(house, "POST /v1/reports", { jose: reported(1, log) })).status).toBe(202);
    const size = await sealedSize(house, log);
    const token = await everybody();
    for (const path of [`/logs/${log}/checkpoint`, `/logs/${log}/checkpoint/${size}`]) {
      const { text } = await ask(house, `GET ${path}`, { token });
      expect(openNote(text, [vkeyOf(vkey)], verifyByOpenssl)).toHaveProperty("text");
      const { json } = await ask(other, `GET ${path}`, { token });
      expect(json).toMatchObject({ status: 503, code: "signer-unavailable" });
    }
  } finally {
    await house.close();
  }
});

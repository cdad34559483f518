/** A log whose keys the service has rotated, to an auditor who knows but one of them. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { formatVkey } from "../../../src/core/note.ts";
import { changeLogKey } from "../../../src/flow/key/log-key.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import { command } from "../../audit/command.ts";
import { testKey } from "../../signing.ts";
import {
  closeHouse,
  type Door,
  type House,
  newAgent,
  newLog,
  openHouse,
  reported,
} from "../door.ts";
import { held } from "../signer.ts";

/** The first is the one that the doors of these tests have always had. */
const SEEDS = [9, 11, 13] as const;
const RECEIPT = 10;
const AGENT = 1;

let house: House;
let door: Door;
let log: string;
beforeAll(async () => {
  house = await openHouse();
  const keys = (seeds: readonly number[]) => seeds.map((seed) => held(testKey(seed)));
  door = house.open({
    held: { checkpoint: keys(SEEDS), receipt: keys([RECEIPT]), available: () => true },
  });
  log = await newLog(door, "rotated twice");
  await newAgent(door, log, AGENT);
  await sealed();
  await rotate(SEEDS[0], SEEDS[1]);
  await rotate(SEEDS[1], SEEDS[2]);
});
afterAll(() => closeHouse(house));

const by = "p_ops";

function vkeyOf(seed: number): string {
  return formatVkey(`door.test/${log}`, testKey(seed).publicKey);
}

async function sealed(): Promise<void> {
  const archive = folderArchive(house.archive);
  const { guard, keyring } = door;
  const clock = { now: () => door.now };
  const sql = house.database.writer;
  await seal({ sql, archive, guard, signerFor: keyring.signerFor, clock, log });
}

async function rotate(from: number, to: number): Promise<void> {
  const change = { purpose: "checkpoint" } as const;
  await changeLogKey(door, { log, by }, { ...change, state: "added", vkey: vkeyOf(to) });
  await sealed();
  await changeLogKey(door, { log, by }, { ...change, state: "retired", vkey: vkeyOf(from) });
  await sealed();
  await door.submit(reported(AGENT, log, { job: { id: String(to) }, counter: String(to) }));
  await sealed();
}

test.each(SEEDS)("from the key of seed %i alone all checkpoints are proven", async (seed) => {
  const verify = ["verify", house.archive, log, "--vkey", vkeyOf(seed), "--json"];
  const { err, exit, out } = await command(...verify);
  expect({ err, exit }).toEqual({ err: "", exit: 0 });
  const [outcome] = JSON.parse(out).logs;
  expect(outcome.checkpoints).toBe(7);
  expect(outcome.learned.sort()).toEqual(
    SEEDS.filter((other) => other !== seed)
      .map(vkeyOf)
      .sort(),
  );
});

test("from a key that the log never had nothing is proven", async () => {
  const verify = ["verify", house.archive, log, "--vkey", vkeyOf(66)];
  expect((await command(...verify)).exit).toBe(2);
});

/** A log's keys from the first to the next, as operators change them and auditors follow. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseCheckpoint } from "../../../src/core/checkpoint.ts";
import { thumbprint } from "../../../src/core/ed25519.ts";
import { formatVkey, linesOf, openNote, parseVkey } from "../../../src/core/note.ts";
import { Problem } from "../../../src/core/problem.ts";
import { readReceipt } from "../../../src/core/receipt.ts";
import { changeLogKey, showLogKeys } from "../../../src/flow/key/log-key.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import { testKey, verifyByOpenssl } from "../../signing.ts";
import {
  closeHouse,
  codes,
  type Door,
  entriesOf,
  type House,
  newAgent,
  newLog,
  ofKind,
  openHouse,
  reported,
} from "../door.ts";
import { held } from "../signer.ts";

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => closeHouse(house));

/** Seeds of keys: the first ones are those that the service of these tests has always had. */
const FIRST = 9;
const NEXT = 11;
const FIRST_RECEIPT = 10;
const NEXT_RECEIPT = 12;

function open(checkpoint: readonly number[], receipt: readonly number[] = [FIRST_RECEIPT]): Door {
  const keys = (seeds: readonly number[]) => seeds.map((seed) => held(testKey(seed)));
  return house.open({
    held: { checkpoint: keys(checkpoint), receipt: keys(receipt), available: () => true },
  });
}

function vkeyOf(log: string, seed: number, purpose = ""): string {
  return formatVkey(`door.test/${log}${purpose}`, testKey(seed).publicKey);
}

/** The note of a seal of all that is committed. */
async function sealed(door: Door, log: string): Promise<string> {
  const archive = folderArchive(house.archive);
  const { guard, keyring } = door;
  const sql = house.database.writer;
  const clock = { now: () => door.now };
  await seal({ sql, archive, guard, signerFor: keyring.signerFor, clock, log });
  const [row] = await house.database.reader<{ note: string }[]>`
    select note from checkpoints where log = ${log} order by size desc limit 1`;
  return row?.note ?? "";
}

/** What an auditor reads who trusts one key alone. */
function readBy(note: string, vkey: string): bigint | undefined {
  const opened = openNote(
    note,
    [parseVkey(vkey)].flatMap((key) => key ?? []),
    verifyByOpenssl,
  );
  return "text" in opened ? parseCheckpoint(opened.text)?.size : undefined;
}

const by = "p_ops";

test("from the first key to the next: both sign in between, and each opens what it signed", async () => {
  const door = open([FIRST, NEXT]);
  const log = await newLog(door, "rotation");
  const [first, next] = [vkeyOf(log, FIRST), vkeyOf(log, NEXT)];
  const purpose = "checkpoint";
  const before = await sealed(door, log);
  expect([readBy(before, first), readBy(before, next)]).toEqual([2n, undefined]);

  const added = await changeLogKey(door, { log, by }, { purpose, state: "added", vkey: next });
  expect(added.written).toBe(true);
  const retire = { purpose, state: "retired", vkey: first } as const;
  await expect(changeLogKey(door, { log, by }, retire)).rejects.toMatchObject({
    code: "successor-unsealed",
  });
  const overlap = await sealed(door, log);
  expect(linesOf(overlap)?.lines).toHaveLength(2);
  expect([readBy(overlap, first), readBy(overlap, next)]).toEqual([3n, 3n]);

  await changeLogKey(door, { log, by }, retire);
  const after = await sealed(door, log);
  expect(linesOf(after)?.lines).toHaveLength(1);
  expect([readBy(after, first), readBy(after, next)]).toEqual([undefined, 4n]);
  expect((await showLogKeys({ ...door, sql: house.database.reader }, log)).keys).toEqual([
    { purpose, vkey: next, state: "in_force", index: "2", held: true },
    { purpose, vkey: first, state: "retired", index: "3", held: true },
    {
      purpose: "receipt",
      vkey: vkeyOf(log, FIRST_RECEIPT, "/receipt"),
      state: "in_force",
      held: true,
    },
  ]);

  // A process that has only the next key now goes on; one that has only the first does not.
  const later = open([NEXT]);
  await newAgent(later, log, 1);
  expect(readBy(await sealed(later, log), next)).toBe(6n);
  const stale = open([FIRST]);
  await stale.appender.control(log, "project_class", () => 0n).catch(() => undefined);
  await expect(sealed(stale, log)).rejects.toMatchObject({ code: "signer-unavailable" });
  expect(stale.guard.state().get(log)).toBe("signer-unavailable");
});

describe("refused", () => {
  const cases: [string, readonly [string, "added" | "retired", number][]][] = [
    ["a key that is not held", [["key-not-held", "added", 13]]],
    ["the first key once more", [["key-in-use", "added", FIRST]]],
    ["the retirement of the only key", [["last-log-key", "retired", FIRST]]],
    ["the retirement of a key that was never added", [["not-found", "retired", NEXT]]],
    ["the retirement of a key that nobody knows", [["key-not-held", "retired", 13]]],
  ];
  test.each(cases)("%s", async (what, steps) => {
    const door = open([FIRST, NEXT]);
    const log = await newLog(door, what);
    const size = (await entriesOf(house.database.reader, log)).length;
    for (const [code, state, seed] of steps) {
      const input = { purpose: "checkpoint", state, vkey: vkeyOf(log, seed) } as const;
      await expect(changeLogKey(door, { log, by }, input)).rejects.toMatchObject({ code });
    }
    expect(await entriesOf(house.database.reader, log)).toHaveLength(size);
  });

  test("a key of another log, or under the name of the other purpose", async () => {
    const door = open([FIRST, NEXT]);
    const log = await newLog(door, "names");
    for (const vkey of [vkeyOf("f".repeat(32), NEXT), vkeyOf(log, NEXT, "/receipt"), "no key"]) {
      const input = { purpose: "checkpoint", state: "added", vkey } as const;
      await expect(changeLogKey(door, { log, by }, input)).rejects.toMatchObject({
        code: "key-not-held",
      });
    }
  });

  test("under dual control, without a second person", async () => {
    const door = open([FIRST, NEXT]);
    const log = await newLog(door, "dual", { control: "dual", card: "none" });
    const input = { purpose: "checkpoint", state: "added", vkey: vkeyOf(log, NEXT) } as const;
    await expect(changeLogKey(door, { log, by }, input)).rejects.toMatchObject({
      code: "approval-required",
    });
  });
});

test("the same change asked twice is one entry, also by two processes at once", async () => {
  const doors = [open([FIRST, NEXT]), open([FIRST, NEXT])];
  const log = await newLog(doors[0] as Door, "twice");
  const input = { purpose: "checkpoint", state: "added", vkey: vkeyOf(log, NEXT) } as const;
  const receipts = await Promise.all(doors.map((door) => changeLogKey(door, { log, by }, input)));
  expect(receipts.map(({ index }) => index)).toEqual([2n, 2n]);
  expect(receipts.filter(({ written }) => written)).toHaveLength(1);
  expect(ofKind(await entriesOf(house.database.reader, log), "log_key")).toHaveLength(1);
});

test("a key that was lost is retired without being held, as long as another is", async () => {
  const both = open([FIRST, NEXT]);
  const log = await newLog(both, "lost");
  const next = vkeyOf(log, NEXT);
  const change = { purpose: "checkpoint", vkey: next } as const;
  await changeLogKey(both, { log, by }, { ...change, state: "added" });
  await sealed(both, log);
  const left = open([FIRST]);
  await left.appender.control(log, "project_class", () => 0n).catch(() => undefined);
  await changeLogKey(left, { log, by }, { ...change, state: "retired" });
  expect(readBy(await sealed(left, log), vkeyOf(log, FIRST))).toBe(4n);
});

test("a seal that cannot be signed leaves no checkpoint, refuses what comes, and is made up for", async () => {
  let away = true;
  const key = held(testKey(FIRST));
  const sign = (message: Uint8Array) =>
    away ? Promise.reject(new Problem("signer-unavailable")) : key.sign(message);
  const keys = { checkpoint: [{ ...key, sign }], receipt: [held(testKey(FIRST_RECEIPT))] };
  const door = house.open({ held: { ...keys, available: () => true } });
  const log = await newLog(door, "unsigned");
  await newAgent(door, log, 3);
  const unavailable = { code: "signer-unavailable" };
  await expect(sealed(door, log)).rejects.toMatchObject(unavailable);
  expect(await folderArchive(house.archive).latestCheckpoint(log)).toBeUndefined();
  expect(door.guard.state().get(log)).toBe("signer-unavailable");
  await expect(door.submit(reported(3, log))).rejects.toMatchObject(unavailable);
  away = false;
  expect(readBy(await sealed(door, log), vkeyOf(log, FIRST))).toBe(4n);
  expect(codes(await door.submit(reported(3, log)))).toEqual(["accepted"]);
});

test("receipts are signed by the oldest key in force, and by the next when that is retired", async () => {
  const door = open([FIRST], [FIRST_RECEIPT, NEXT_RECEIPT]);
  const log = await newLog(door, "receipt keys");
  await newAgent(door, log, 2);
  const purpose = "receipt";
  const [first, next] = [FIRST_RECEIPT, NEXT_RECEIPT].map((seed) => vkeyOf(log, seed, "/receipt"));
  const signedBy = async (): Promise<string | undefined> => {
    const { receipt = "" } = await door.submit(reported(2, log));
    return readReceipt(receipt)?.jws.kid;
  };
  const kid = (seed: number): string => thumbprint(testKey(seed).publicKey);
  expect(await signedBy()).toBe(kid(FIRST_RECEIPT));
  await changeLogKey(door, { log, by }, { purpose, state: "added", vkey: next ?? "" });
  expect(await signedBy()).toBe(kid(FIRST_RECEIPT));
  await sealed(door, log);
  await changeLogKey(door, { log, by }, { purpose, state: "retired", vkey: first ?? "" });
  expect(await signedBy()).toBe(kid(NEXT_RECEIPT));
  // Another process hears of it within a second.
  const other = open([FIRST], [FIRST_RECEIPT, NEXT_RECEIPT]);
  expect(readReceipt((await other.submit(reported(2, log))).receipt ?? "")?.jws.kid).toBe(
    kid(NEXT_RECEIPT),
  );
});

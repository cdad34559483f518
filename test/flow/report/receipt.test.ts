/** Receipts as the service gives them: over every outcome, never at the price of an answer. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { formatVkey, parseVkey } from "../../../src/core/note.ts";
import { Problem } from "../../../src/core/problem.ts";
import { coversResults, readReceipt, verifyReceipt } from "../../../src/core/receipt.ts";
import { TYP } from "../../../src/core/report.ts";
import { encodeBase64 } from "../../../src/core/text.ts";
import type { SigningKey } from "../../../src/flow/key/signing-key.ts";
import type { Ingested } from "../../../src/flow/report/ingest.ts";
import { readEntry } from "../../../src/store/entries.ts";
import { testKey, verifyByOpenssl } from "../../signing.ts";
import {
  closeHouse,
  codes,
  entriesOf,
  type House,
  newAgent,
  newLog,
  openHouse,
  reported,
  sign,
} from "../door.ts";
import { held } from "../signer.ts";

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => closeHouse(house));

/** The receipt of an answer, verified under the key that the log is known by. */
function receiptOf({ log, results, receipt = "" }: Ingested) {
  const read = readReceipt(receipt);
  const vkey = parseVkey(formatVkey(`door.test/${log}/receipt`, testKey(10).publicKey));
  if (read === undefined || vkey === undefined) throw new Error("no receipt");
  expect(verifyReceipt(read, vkey, verifyByOpenssl)).toBe(true);
  expect(coversResults(read.payload, results)).toBe(true);
  return read.payload;
}

test("every outcome of a request is under its receipt, and what has an index stands there", async () => {
  const door = house.open();
  const log = await newLog(door, "receipts of all");
  await newAgent(door, log, 1);
  const answered = await door.submit(
    reported(1, log),
    reported(1, log, { counter: "2" }), // duplicate
    reported(1, log, { counter: "3", usage: { duration_ms: "61000" } }), // conflict
    reported(1, log, { counter: "4", uuid: "0d4c5f57-6d2b-4c7c-a5ad-7f3a0f1d2c3b" }), // held
    sign(1, TYP.report, { counter: "5", log }), // schema
    "no jws",
  );
  expect(codes(answered)).toEqual([
    "accepted",
    "duplicate",
    "conflict",
    "outside-enrolment",
    "schema",
    "malformed",
  ]);
  expect(receiptOf(answered)).toMatchObject({
    count: "6",
    issued_at: new Date(door.now).toISOString(),
    log,
    origin: `door.test/${log}`,
  });
  const promised = answered.results.filter(({ index }) => index !== undefined);
  expect(promised).toHaveLength(4);
  for (const { index = "", leaf } of promised) {
    const entry = await readEntry(house.database.reader, log, BigInt(index));
    expect(encodeBase64(entry.leaf)).toBe(leaf);
  }
});

test("a report that comes again gets a receipt of its own, for the same entry", async () => {
  const door = house.open();
  const log = await newLog(door, "receipts again");
  await newAgent(door, log, 2);
  const first = await door.submit(reported(2, log));
  door.now += 86_400_000;
  const again = await door.submit(reported(2, log));
  expect(again.results).toEqual(first.results);
  expect(receiptOf(again).root).toBe(receiptOf(first).root);
  expect(receiptOf(again).issued_at).not.toBe(receiptOf(first).issued_at);
});

test("of what names no log there is no receipt", async () => {
  const answered = await house.open().submit("no jws", "none either");
  expect(answered).toMatchObject({ log: "", results: [{ code: "malformed" }, {}] });
  expect(answered).not.toHaveProperty("receipt");
});

test("a service whose signer is away takes nothing", async () => {
  const log = await newLog(house.open(), "signer away");
  await newAgent(house.open(), log, 3);
  const size = (await entriesOf(house.database.reader, log)).length;
  const keys = { checkpoint: [held(testKey(9))], receipt: [held(testKey(10))] };
  const away = house.open({ held: { ...keys, available: () => false } });
  await expect(away.submit(reported(3, log))).rejects.toMatchObject({
    code: "signer-unavailable",
  });
  expect(await entriesOf(house.database.reader, log)).toHaveLength(size);
  // What names no log is promised nothing, and is told what is wrong with it all the same.
  expect(codes(await away.submit("no jws"))).toEqual(["malformed"]);
});

test("what was committed is answered although its receipt could not be signed; the same again brings it", async () => {
  const log = await newLog(house.open(), "signer fails");
  await newAgent(house.open(), log, 4);
  const failing: SigningKey = {
    publicKey: testKey(10).publicKey,
    sign: () => Promise.reject(new Problem("signer-unavailable")),
  };
  const keys = { checkpoint: [held(testKey(9))], receipt: [failing], available: () => true };
  const door = house.open({ held: keys });
  const answered = await door.submit(reported(4, log));
  expect(codes(answered)).toEqual(["accepted"]);
  expect(answered).not.toHaveProperty("receipt");
  expect(door.failures).toEqual([expect.objectContaining({ code: "signer-unavailable" })]);
  const again = await house.open().submit(reported(4, log));
  expect(again.results).toEqual(answered.results);
  expect(receiptOf(again).log).toBe(log);
});

/** What the one door writes and the sealer signs is what check and rebuild expect, to the last row. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { TYP } from "../../src/core/report.ts";
import { check } from "../../src/flow/check/check.ts";
import type { CheckEvent } from "../../src/flow/check/event.ts";
import { revoke } from "../../src/flow/key/revoke.ts";
import { rotate } from "../../src/flow/key/rotate.ts";
import { openGuard } from "../../src/flow/log/guard.ts";
import { seal } from "../../src/flow/log/seal.ts";
import { attest } from "../../src/flow/report/attest.ts";
import { verifySignature } from "../../src/flow/report/signature.ts";
import { refresh } from "../../src/flow/usage/fold.ts";
import { rebuild } from "../../src/flow/usage/rebuild.ts";
import { folderArchive } from "../../src/store/archive-folder.ts";
import { CARD, jwk, kidOf, NOW, PROJECT_CLASS, QUOTA } from "../core/history.ts";
import { freshDatabase } from "../postgres.ts";
import {
  closeHouse,
  codes,
  type Door,
  type House,
  newAgent,
  newLog,
  openHouse,
  reported,
  sha256,
  sign,
  signerFor,
  vkeyOf,
} from "./door.ts";
import { restore, tablesOf } from "./restored.ts";

let house: House;
let door: Door;

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
});
afterAll(() => closeHouse(house));

const UNKNOWN = "0d4c5f57-6d2b-4c7c-a5ad-7f3a0f1d2c3b";

async function publish(log: string): Promise<void> {
  const archive = folderArchive(house.archive);
  const clock = { now: () => door.now };
  const guard = openGuard({ archive, signerFor, clock });
  await seal({ sql: house.database.writer, archive, guard, signerFor, clock, log });
  await refresh({ sql: house.database.writer, clock });
}

test("every outcome that the door knows, twice and in every order of counters, is proven", async () => {
  const log = await newLog(door, "all outcomes");
  const other = await newLog(door, "another log");
  await newAgent(door, log, 1);
  await newAgent(door, log, 2, [{ effective_from: "2026-12-01T00:00:00.000Z" }]);
  await newAgent(door, other, 3);
  const usage = { duration_ms: "61000" };
  const batch = [
    reported(1, log, { counter: "1" }),
    reported(1, log, { counter: "2" }), // duplicate
    reported(1, log, { counter: "3", usage }), // conflict
    reported(1, log, { counter: "4", uuid: UNKNOWN }), // hold
    sign(1, TYP.report, { counter: "5", log }), // schema
    sign(1, TYP.report, { counter: "5", id: "x", log }), // schema, and the counter again
    reported(1, log, { counter: "1", usage }), // conflict, and the counter again
    reported(2, log, { counter: "1" }), // duplicate of another key's
    reported(1, log, { counter: "3" }), // duplicate, and the counter again
  ];
  const first = await door.submit(...batch);
  expect(new Set(codes(first))).toEqual(
    new Set(["accepted", "duplicate", "conflict", "outside-enrolment", "schema"]),
  );
  expect(await door.submit(...batch)).toEqual(first);
  expect(codes(await door.submit(reported(1, other, { counter: "9" })))).toEqual(["wrong-log"]);

  await door.appender.control(log, "project_class", () => PROJECT_CLASS);
  await door.appender.control(log, "quota", () => QUOTA);
  await publish(log);
  await revoke(
    door,
    { log, kid: kidOf(2), by: "ops" },
    { last_trusted_counter: "1", reason: "test" },
  );
  expect(codes(await door.submit(reported(2, log, { counter: "2", job: { id: "88" } })))).toEqual([
    "key-ended",
  ]);
  await publish(log);
  await publish(other);
  await door.submit(reported(3, other));
  await expectProven();
});

test("a note that comes to stand on another page than what it is about is proven", async () => {
  const log = await newLog(door, "two pages");
  await newAgent(door, log, 6);
  // One line for the first, two for each that follows: the 256th and 257th belong together.
  const texts = Array.from({ length: 130 }, (_, i) =>
    sign(6, TYP.report, { counter: "1", id: String(i), log }),
  );
  expect(new Set(codes(await door.submit(...texts)))).toEqual(new Set(["schema"]));
  await publish(log);
  await expectProven();
});

test("a rotated key, its attestations and its successor are proven", async () => {
  const log = await newLog(door, "rotation", { card: CARD });
  await newAgent(door, log, 4);
  await door.submit(reported(4, log));
  await attest(
    door,
    sign(4, TYP.attestation, {
      clock_offset_ms: "-3",
      counter: "1",
      files: [],
      issued_at: NOW,
      log,
      malformed: "0",
      rejected: "0",
      spool: "0",
    }),
  );
  const rotation = sign(4, TYP.rotation, {
    final_counter: "1",
    issued_at: NOW,
    log,
    public_key: jwk(5),
  });
  await rotate(door, { rotation, claim: await successor(log, 4, 5) });
  expect(codes(await door.submit(reported(5, log, { job: { id: "77" } })))).toEqual(["accepted"]);
  expect(codes(await door.submit(reported(4, log, { counter: "2" })))).toEqual(["duplicate"]);
  await publish(log);
  await expectProven();
});

/** The claim of a successor names the token of the enrolment that its predecessor claimed. */
async function successor(log: string, seed: number, heir: number): Promise<string> {
  const [row] = await house.database.reader<{ bytes: Uint8Array }[]>`
    select bytes from entries where log = ${log} and kind = 'enrolment' order by index desc limit 1`;
  const { body } = JSON.parse(Buffer.from(row?.bytes ?? []).toString());
  expect(kidOf(seed)).not.toBe(kidOf(heir));
  return sign(heir, TYP.claim, {
    issued_at: NOW,
    log,
    public_key: jwk(heir),
    token_sha256: body.token_sha256,
  });
}

test("replayed from the archive into an empty database, all of it is there again to the last row", async () => {
  const copy = await freshDatabase();
  const logs = await house.database.reader<{ log: string }[]>`select log from heads`;
  expect(logs.length).toBeGreaterThan(3);
  for (const { log } of logs) {
    await publish(log);
    await restore(copy, house.archive, log);
    expect(await tablesOf(copy, log)).toEqual(await tablesOf(house.database, log));
  }
  await copy.drop();
});

async function expectProven(): Promise<void> {
  const { owner, reader } = house.database;
  const vkeys = (log: string) => [vkeyOf(log)];
  const events: CheckEvent[] = [];
  const notary = { vkeys, verify: verifySignature };
  for await (const event of check({ sql: reader }, { hash: sha256, notary })) events.push(event);
  expect(events.filter(({ kind }) => kind === "finding")).toEqual([]);
  expect(events.at(-1)).toMatchObject({ kind: "summary", exit: 0 });
  const clock = { now: () => door.now };
  const rebuilt = await rebuild({ sql: owner, clock, hash: sha256 }, { write: false });
  expect(rebuilt.tables.filter(({ state }) => state !== "equal")).toEqual([]);
  expect(rebuilt.exit).toBe(0);
}

/** Every code of BYTES §3, and what it leaves on the log. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type FreshDatabase, freshDatabase } from "../postgres.ts";
import { type Door, digestOf, entriesOf, newAgent, newLog, openDoor, reported } from "./door.ts";

let database: FreshDatabase;
let archive: string;
let door: Door;

beforeAll(async () => {
  database = await freshDatabase();
  archive = await mkdtemp(join(tmpdir(), "minutebook-door-"));
  door = openDoor(database.writer, { archive });
});

afterAll(async () => {
  await door.close();
  await database.drop();
  await rm(archive, { recursive: true });
});

test("a report becomes one usage entry, and the entry holds its JWS verbatim", async () => {
  const log = await newLog(door, "one usage");
  await newAgent(door, log, 1);
  const jws = reported(1, log);
  const { results, log: named } = await door.submit(jws);
  expect(named).toBe(log);
  expect(results).toMatchObject([{ code: "accepted", digest: digestOf(jws), index: "4" }]);
  const entries = await entriesOf(database.reader, log);
  expect(entries.map(({ kind }) => kind)).toEqual([
    "log",
    "rate_card",
    "enrolment",
    "key",
    "usage",
  ]);
  expect(entries[4]?.body).toMatchObject({ jws, compute_ms: "60000.000000", enrolment: "2" });
});

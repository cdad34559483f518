/** What the service runs as and is guarded by: on the log whenever it changes, and nothing while it does not. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Body } from "../../../src/core/entry.ts";
import { type Build, readGuards } from "../../../src/flow/evidence/environment.ts";
import { watchEnvironment } from "../../../src/flow/evidence/watch-environment.ts";
import type { Sql } from "../../../src/store/connect.ts";
import {
  closeHouse,
  type Door,
  entriesOf,
  type House,
  newLog,
  ofKind,
  openHouse,
} from "../door.ts";

let house: House;
let door: Door;
let owner: Sql;
let log: string;

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
  ({ owner } = house.database);
  log = await newLog(door, "environment");
});
afterAll(() => closeHouse(house));

const BUILD: Build = {
  dependencies_sha256: Buffer.alloc(32, 1).toString("base64"),
  schema_sha256: Buffer.alloc(32, 2).toString("base64"),
  version: "1.0.0",
};

/** A process that watches, and what it has told. */
function watcher(build = BUILD) {
  const told = { drift: [] as unknown[], said: [] as unknown[], failed: [] as unknown[] };
  const clock = { now: () => door.now };
  const watch = watchEnvironment({
    ...{ build, clock, random: randomBytes, sql: house.database.writer },
    appender: door.appender,
    onDrift: (members) => told.drift.push(members),
    onSaid: (name, members) => told.said.push([name, members]),
    onFailure: (error) => told.failed.push(error),
  });
  return { told, ...watch };
}

async function environments(): Promise<Body<"environment">[]> {
  return ofKind(await entriesOf(house.database.reader, log), "environment").map(({ body }) => body);
}

test("it is said at the start, and not again by a process that is the same", async () => {
  const first = watcher();
  await first.round();
  await first.round();
  await watcher().round();
  expect(await environments()).toEqual([
    { ...BUILD, ...(await readGuards(owner)), salt: expect.any(String) },
  ]);
  expect(first.told.said).toEqual([[log, expect.arrayContaining(["version", "grants_sha256"])]]);
});

test.each<[string, "grants_sha256" | "triggers_sha256", string, string]>([
  [
    "a trigger that is dropped",
    "triggers_sha256",
    "drop trigger proposal_ends_second_person on proposal_ends",
    `create trigger proposal_ends_second_person before insert on proposal_ends
       for each row execute function refuse_same_person();
     alter table proposal_ends enable always trigger proposal_ends_second_person`,
  ],
  [
    "a trigger that is disabled",
    "triggers_sha256",
    "alter table entries disable trigger entries_append_only",
    "alter table entries enable always trigger entries_append_only",
  ],
  [
    "a function that sees everything",
    "triggers_sha256",
    `create or replace function viewer_sees(of_namespace bigint) returns boolean
       language sql stable parallel safe return true`,
    `create or replace function viewer_sees(of_namespace bigint) returns boolean
       language sql stable parallel safe
       return case current_setting('minutebook.namespaces', true)
         when '*' then true
         when '' then false
         else of_namespace = any(current_setting('minutebook.namespaces', true)::bigint[])
       end`,
  ],
  [
    "a policy that is dropped",
    "triggers_sha256",
    "alter table entries disable row level security",
    "alter table entries enable row level security",
  ],
  [
    "a key that is no longer one",
    "triggers_sha256",
    "alter table approval_uses drop constraint approval_uses_pkey",
    "alter table approval_uses add constraint approval_uses_pkey primary key (log, approval)",
  ],
  [
    "a grant",
    "grants_sha256",
    "grant update on entries to minutebook_writer",
    "revoke update on entries from minutebook_writer",
  ],
  [
    "a grant on a column",
    "grants_sha256",
    "grant update (fact) on jobs to minutebook_reader",
    "revoke update (fact) on jobs from minutebook_reader",
  ],
])(
  "%s while the process runs is on the log, and so is its return",
  async (_, member, lift, mend) => {
    const process = watcher();
    await process.round();
    const before = await environments();
    await owner.unsafe(lift);
    await process.round();
    expect(process.drift()).toContain(member);
    await process.round();
    await owner.unsafe(mend);
    await process.round();
    const [lifted, mended, ...more] = (await environments()).slice(before.length);
    expect(more).toEqual([]);
    expect(lifted?.[member]).not.toBe(before.at(-1)?.[member]);
    expect({ ...mended, salt: "" }).toEqual({ ...before.at(-1), salt: "" });
    expect(process.drift()).toEqual([]);
  },
);

test("two versions side by side say it once each, and do not take turns", async () => {
  const [old, next] = [watcher(), watcher({ ...BUILD, version: "1.1.0" })];
  const before = (await environments()).length;
  await old.round();
  await next.round();
  for (let round = 0; round < 3; round += 1) {
    door.now += 7_200_000;
    await old.round();
    await next.round();
  }
  const versions = (await environments()).slice(before).map(({ version }) => version);
  expect(versions).toEqual(["1.1.0"]);
});

test.each(["dependencies_sha256", "schema_sha256", "version"] as const)(
  "a process that starts with another %s says so",
  async (member) => {
    await watcher().round();
    const process = watcher({ ...BUILD, [member]: Buffer.alloc(32, 3).toString("base64") });
    await process.round();
    expect(process.told.said).toEqual([[log, [member]]]);
  },
);

test("a log that comes later is told within the hour", async () => {
  const process = watcher({ ...BUILD, version: "1.1.0" });
  await process.round();
  const late = await newLog(door, "late");
  door.now += 3_600_000;
  await process.round();
  const said = ofKind(await entriesOf(house.database.reader, late), "environment");
  expect(said.map(({ body }) => body.version)).toEqual(["1.1.0"]);
});

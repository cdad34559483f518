/** Every day says what was verified on it, or that nothing was; by one process, whatever the others do. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Body } from "../../../src/core/entry.ts";
import { readCompact } from "../../../src/core/jws.ts";
import { fact } from "../../../src/core/report.ts";
import { encodeUtf8 } from "../../../src/core/text.ts";
import {
  listVerifications,
  type Told,
  type Verifying,
  verifyDue,
} from "../../../src/flow/evidence/verification.ts";
import { holdClaim } from "../../../src/store/evidence-claims.ts";
import {
  closeHouse,
  type Door,
  entriesOf,
  type House,
  newAgent,
  newLog,
  ofKind,
  openHouse,
  reported,
  reportIn,
  sha256,
} from "../door.ts";

let house: House;
let door: Door;
beforeAll(async () => {
  house = await openHouse();
  door = house.open();
});
afterAll(() => closeHouse(house));

const DAY_MS = 86_400_000;

function verifier(holder = "one"): { run(): Promise<void>; found: string[]; failed: unknown[] } {
  const { reader, writer } = house.database;
  const [found, failed]: [string[], unknown[]] = [[], []];
  const told: Told = {
    onFinding: ({ index, table, column }) => found.push(`${index} ${table}.${column}`),
    onFailure: (error) => failed.push(error),
    onVerified: () => undefined,
  };
  const verifying: Verifying = {
    ...{ sql: writer, reader, holder, hash: sha256, random: randomBytes, version: "1.0.0" },
    appender: door.appender,
    clock: { now: () => door.now },
    signal: new AbortController().signal,
  };
  return { run: () => verifyDue(verifying, told), found, failed };
}

async function said(log: string): Promise<Body<"verification">[]> {
  const entries = await entriesOf(house.database.reader, log);
  return ofKind(entries, "verification").map(({ body }) => body);
}

const today = (): string => new Date(door.now).toISOString().slice(0, 10);

let seeds = 40;
/** A log with an agent that has reported a build. */
async function logWithBuild(name: string): Promise<{ log: string; report(job: string): string }> {
  seeds += 1;
  const seed = seeds;
  const log = await newLog(door, name);
  await newAgent(door, log, seed);
  const report = (id: string): string => reported(seed, log, { counter: id, job: { id } });
  await door.submit(report("1"));
  return { log, report };
}

test("each day goes on where the day before ended, and a day is said once", async () => {
  const { log, report } = await logWithBuild("daily");
  const one = verifier();
  await one.run();
  await one.run();
  const [first, ...others] = await said(log);
  expect(others).toEqual([]);
  expect(first).toMatchObject({ day: today(), from: "0", outcome: "passed", findings: "0" });
  await door.submit(report("2"));
  door.now += DAY_MS;
  await one.run();
  const [, second] = await said(log);
  const size = BigInt(first?.to ?? 0) + 2n;
  expect(second).toMatchObject({ day: today(), from: first?.to, to: `${size}`, outcome: "passed" });
  expect([one.found, one.failed]).toEqual([[], []]);
});

test("days on which nobody verified anything are named", async () => {
  const { log } = await logWithBuild("gap");
  await verifier().run();
  door.now += 3 * DAY_MS;
  await verifier().run();
  const outcomes = (await said(log)).map(({ outcome, from, to }) => [outcome, from === to]);
  expect(outcomes).toEqual([
    ["passed", false],
    ["nothing", true],
    ["nothing", true],
    ["passed", false],
  ]);
  const period = { from: "2000-01-01", to: today() };
  const days: string[] = [];
  for await (const { day } of listVerifications(house.database.reader, log, period)) days.push(day);
  expect(new Set(days).size).toBe(4);
});

test("while another process holds the task nothing is done twice, and its claim ends with it", async () => {
  const { log } = await logWithBuild("claimed");
  const { writer } = house.database;
  expect(await holdClaim(writer, "verification", "another", 3_600)).toBe(true);
  await verifier("one").run();
  expect(await said(log)).toEqual([]);
  await house.database.owner`update evidence_claims set until = clock_timestamp() - interval '1 s'`;
  await Promise.all([verifier("one").run(), verifier("two").run()]);
  expect(await said(log)).toHaveLength(1);
});

/** Past every guard, as an owner can. */
async function altered(statement: string, table: string): Promise<void> {
  const { owner } = house.database;
  await owner.unsafe(`alter table ${table} disable trigger all; ${statement};
    alter table ${table} enable always trigger ${table}_append_only`);
}

test.each<[string, string, (log: string) => string, (log: string) => string, RegExp]>([
  [
    "a charge",
    "entries",
    (log) => `update entries set compute_ms = compute_ms + 1 where log = '${log}' and job_id = 1`,
    (log) => `update entries set compute_ms = compute_ms - 1 where log = '${log}' and job_id = 1`,
    /entries\.compute_ms/,
  ],
  [
    "a job that may come again",
    "jobs",
    (log) => `update jobs set job_id = 91 where log = '${log}' and job_id = 1`,
    (log) => `update jobs set job_id = 1 where log = '${log}' and job_id = 91`,
    /jobs\./,
  ],
])("%s that was altered fails the day and every day until it is mended", async (...row) => {
  const [name, table, alter, mend, pattern] = row;
  const { log, report } = await logWithBuild(`altered ${name}`);
  await altered(alter(log), table);
  const one = verifier();
  await one.run();
  expect(one.found.join()).toMatch(pattern);
  await door.submit(report("2"));
  door.now += DAY_MS;
  await verifier().run();
  await altered(mend(log), table);
  door.now += DAY_MS;
  await verifier().run();
  const all = await said(log);
  expect(all.map(({ outcome, from }) => [outcome, from])).toEqual([
    ["failed", "0"],
    ["failed", "0"],
    ["passed", "0"],
  ]);
  expect(all[0]?.findings).not.toBe("0");
});

test("a statement under a signature that is not its key's is found, though all else is as it must be", async () => {
  const { log, report } = await logWithBuild("forged");
  const genuine = report("2");
  const jws = genuine.replace(/.{86}$/, "A".repeat(86));
  const { kid } = readCompact(genuine) ?? { kid: "" };
  const [measured, digest] = [reportIn(jws), sha256(encodeUtf8(jws))];
  // Past the verifier, as a service could that lies.
  const signed = { kind: "signed", jws, kid, digest, report: measured } as const;
  await door.appender.reports(log, [{ ...signed, fact: fact(measured, sha256) }]);
  const { index } = ofKind(await entriesOf(house.database.reader, log), "usage").at(-1) ?? {};
  const one = verifier();
  await one.run();
  expect(one.found).toEqual([`${index} entries.bytes`]);
  expect((await said(log)).map(({ outcome }) => outcome)).toEqual(["failed"]);
});

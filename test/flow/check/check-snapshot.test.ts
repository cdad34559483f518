/** A check reads page after page, and all of them in one snapshot. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { check } from "../../../src/flow/check/check.ts";
import type { CheckEvent, Finding } from "../../../src/flow/check/event.ts";
import { sha256 } from "../../../src/flow/report/signature.ts";
import { refresh } from "../../../src/flow/usage/fold.ts";
import type { Agent } from "../../builds.ts";
import { TestLedger } from "../../ledger.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { clock, HOSTED, LOG, notaryOf } from "../history.ts";

let db: FreshDatabase;
let ledger: TestLedger;
let agent: Agent;

beforeEach(async () => {
  db = await freshDatabase();
  ledger = new TestLedger(LOG);
  ledger.card("hosted", { small: "1" });
  agent = ledger.enrol(1, [HOSTED]);
});
afterEach(async () => {
  await db.drop();
});

async function run(): Promise<{ findings: Finding[]; summary: CheckEvent | undefined }> {
  const events: CheckEvent[] = [];
  for await (const event of check({ sql: db.reader }, { hash: sha256, notary: notaryOf(ledger) }))
    events.push(event);
  return { findings: events.filter((event) => event.kind === "finding"), summary: events.at(-1) };
}

test("a log of several pages is proven, with checkpoints around the seam; a change behind it is named", async () => {
  for (let job = 1; job <= 1_010; job += 1) ledger.report(agent, { job, runner: HOSTED });
  await ledger.load(db.owner);
  for (const size of [999n, 1_000n, 1_001n, 1_005n]) await ledger.seal(db.owner, size);
  expect(await run()).toMatchObject({ findings: [], summary: { entries: "1014", exit: 0 } });
  await db.superuser`alter table checkpoints disable trigger all`;
  await db.superuser`update checkpoints set root = sha256(root) where size = 1001`;
  await db.superuser`alter table jobs disable trigger all`;
  await db.superuser`update jobs set fact = sha256(fact) where index = 1012`;
  const { findings } = await run();
  expect(findings.map(({ table, index, column }) => `${table} ${index} ${column}`)).toEqual([
    "jobs 1012 fact",
    "checkpoints 1000 root",
  ]);
});

test("what is appended, sealed and folded while a check runs is not in its snapshot, and no finding", async () => {
  ledger.report(agent, { job: 1, runner: HOSTED });
  await ledger.load(db.owner);
  await ledger.seal(db.owner);
  await refresh({ sql: db.writer, clock });
  await ledger.load(db.owner);
  const running = check({ sql: db.reader }, { hash: sha256, notary: notaryOf(ledger) });
  const first = await running.next();
  expect(first.value).toMatchObject({ kind: "progress", index: "5", size: "5" });
  ledger.report(agent, { job: 2, runner: HOSTED });
  await ledger.load(db.owner);
  await ledger.seal(db.owner);
  await refresh({ sql: db.writer, clock });
  const last = await running.next();
  expect(last.value).toMatchObject({ kind: "summary", entries: "5", findings: 0, exit: 0 });
  await running.return();
});

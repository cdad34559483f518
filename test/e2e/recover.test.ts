/** `minutebook recover` and `minutebook adopt-archive` as processes: killed, refused, run again. */
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { instantText } from "../../src/core/unit.ts";
import { reported } from "../flow/door.ts";
import { tablesOf } from "../flow/restored.ts";
import { ask, newAgent, newLogOn } from "../http/house.ts";
import { type FreshDatabase, freshDatabase } from "../postgres.ts";
import { openSite, run, type Site, serve, start } from "./process.ts";

let site: Site;
/** Empty at first. */
let copy: FreshDatabase;
let log: string;
let vkey: string;
let size: bigint;

const FINISHED = instantText(Date.now() - 60_000);

beforeAll(async () => {
  [site, copy] = await Promise.all([openSite(), freshDatabase()]);
  const service = await serve(site.environment);
  const { token } = site;
  log = await newLogOn(service, token, "recovered");
  await newAgent(service, log, 1, {}, token);
  for (let batch = 0; batch < 8; batch += 1) {
    const reports = Array.from({ length: 250 }, (_, i) => {
      const number = String(batch * 250 + i + 1);
      const usage = { finished_at: FINISHED };
      return reported(1, log, { counter: number, job: { id: number }, usage });
    });
    await ask(service, "POST /v1/reports", { json: { reports } });
  }
  const listed = (await ask(service, "GET /v1/logs", { token })).json["logs"];
  [{ vkey }] = listed as [{ vkey: string }];
  await service.end("SIGTERM");
  size = await headOf(site.database);
});
afterAll(async () => {
  await copy.drop();
  await site.remove();
});

async function headOf({ reader }: FreshDatabase): Promise<bigint> {
  const [row] = await reader<{ size: bigint }[]>`select size from heads where log = ${log}`;
  return row?.size ?? 0n;
}

const onCopy = (): Record<string, string> => ({
  ...site.environment,
  DATABASE_URL: copy.urls.writer,
  READER_DATABASE_URL: copy.urls.reader,
});

test("killed with -9 again and again while it replays, and run to its end, it leaves the log as it was archived", async () => {
  for (let killed = 0; killed < 2; killed += 1) {
    const before = await headOf(copy);
    const child = start(["recover", log], onCopy());
    const ended = new Promise((resolve) => child.once("close", resolve));
    await expect.poll(() => headOf(copy), { timeout: 60_000, interval: 5 }).toBeGreaterThan(before);
    child.kill("SIGKILL");
    await ended;
    const checked = await run(["check", "--vkey", vkey], onCopy());
    expect([checked.status, checked.stderr]).toEqual([0, ""]);
  }
  const { status, stdout, stderr } = await run(["recover", "--all"], onCopy());
  expect([status, stderr]).toEqual([0, ""]);
  expect(stdout).toContain(`${size}`);
  expect(await tablesOf(copy, log)).toEqual(await tablesOf(site.database, log));
  const again = await run(["recover", "--all", "--dry-run", "--json"], onCopy());
  expect(again.status).toBe(0);
  expect(JSON.parse(again.stdout)).toMatchObject({
    logs: [{ log, before: `${size}`, after: `${size}`, checkpoints: 0, aside: 0 }],
    refused: [],
  });
}, 300_000);

test("a database that went another way is refused, and what only it has is written out, once", async () => {
  await copy.superuser`alter table entries disable trigger entries_append_only`;
  await copy.superuser`
    update entries
    set bytes = convert_to(replace(convert_from(bytes, 'UTF8'), '"kind"', '"kinD"'), 'UTF8')
    where log = ${log} and index = 7`;
  // A service, or this command, would not start without it.
  await copy.superuser`alter table entries enable always trigger entries_append_only`;
  const dump = join(site.folder, "forked.jsonl");
  const found = await run(["recover", log, "--dump", dump, "--json"], onCopy());
  expect(found.status).toBe(1);
  expect(JSON.parse(found.stdout)).toMatchObject({
    refused: [{ log, code: "log-forked", index: "7" }],
  });
  const lines = (await readFile(dump, "utf8")).trimEnd().split("\n");
  expect(lines).toHaveLength(Number(size) - 7);
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ log, index: String(size - 1n) });
  const again = await run(["recover", log, "--dump", dump], onCopy());
  expect(again.status).toBe(2);
  expect(again.stderr).toContain("is there already");
});

test("a log that is in no archive, and an archive that has no log, are told apart from success", async () => {
  const empty = join(site.folder, "empty");
  await mkdir(empty);
  const fresh = await freshDatabase();
  const at = { ...site.environment, DATABASE_URL: fresh.urls.writer, ARCHIVE_URL: empty };
  expect((await run(["recover", "--all"], at)).status).toBe(2);
  const unknown = await run(["recover", "f".repeat(32)], at);
  expect([unknown.status, unknown.stdout]).toEqual([1, expect.stringContaining("no-checkpoint")]);
  expect((await run(["recover"], at)).status).toBe(2);
  await fresh.drop();
});

test("an archive that was lost is adopted by whoever answers for it, and audited with the old key", async () => {
  const adopted = join(site.folder, "adopted");
  await mkdir(adopted);
  const at = { ...site.environment, ARCHIVE_URL: adopted };
  const command = ["adopt-archive", log, "--reason", "the bucket is gone", "--json", "--by"];
  const named = await run([...command, "Jane Doe"], at);
  expect([named.status, named.stderr]).toEqual([2, expect.stringContaining("invalid-usage")]);
  const by = "p_0123456789012345678901";
  const { status, stdout, stderr } = await run([...command, by], at);
  expect([status, stderr]).toEqual([0, ""]);
  const done = { log, size: `${size}`, index: `${size}`, sealed: `${size + 1n}` };
  expect(JSON.parse(stdout)).toEqual(done);
  const audited = await run(["verify", adopted, "--vkey", vkey], {}, "audit/cli.ts");
  expect([audited.status, audited.stderr]).toEqual([0, ""]);
  const again = await run([...command, by], at);
  expect([again.status, again.stderr]).toEqual([1, expect.stringContaining("nothing-lost")]);
});

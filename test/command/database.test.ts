import { sign } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { dataFolder } from "../../src/command/folder.ts";
import { ensureSigningKey, rawPublicKey } from "../../src/custody.ts";
import { findPostgres, removePostgres, startPostgres } from "../../src/embedded.ts";
import { connect } from "../../src/store/connect.ts";
import { writeHistory } from "../flow/history.ts";
import { TestLedger } from "../ledger.ts";
import { type FreshDatabase, freshDatabase } from "../postgres.ts";
import { minutebook } from "./terminal.ts";

let db: FreshDatabase;
let ledger: TestLedger;
const undo: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  db = await freshDatabase();
  ledger = await writeHistory(db);
});

afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

afterAll(() => db.drop());

const check = (...args: string[]) =>
  minutebook(["check", ...args], { READER_DATABASE_URL: db.urls.reader });
const rebuild = (...args: string[]) =>
  minutebook(["rebuild", ...args], { OWNER_DATABASE_URL: db.urls.owner });

/** One digit of one head, by somebody who may do anything. */
async function alter(): Promise<void> {
  await db.superuser`update heads set control_index = control_index + 1`;
}

test("check proves an untouched database, its checkpoints' signatures too", async () => {
  const { status, stdout, stderr } = await check("--vkey", ledger.vkey);
  expect([status, stderr]).toEqual([0, ""]);
  expect(stdout).toBe(`PROVEN: logs 1, entries ${ledger.size}, findings 0.\n`);
});

test("check names what was altered, in a line and in JSON, and ends with 1", async () => {
  await alter();
  undo.push(() => rebuild("--write"));
  const [plain, json] = [await check(), await check("--json")];
  const index = String(ledger.size - 1n);
  expect([plain.status, json.status]).toEqual([1, 1]);
  expect(plain.stdout).toContain(`log ${ledger.log}, entry ${index}: heads.control_index is `);
  expect(JSON.parse(json.stdout)).toMatchObject({
    exit: 1,
    entries: String(ledger.size),
    findings: {
      count: 1,
      tables: { heads: 1 },
      listed: [{ log: ledger.log, table: "heads", column: "control_index" }],
    },
  });
});

test("check finds fault with checkpoints that none of the given keys signed", async () => {
  const { vkey } = new TestLedger("c".repeat(32));
  const { status, stdout } = await check("--vkey", vkey);
  expect(status).toBe(1);
  expect(stdout).toContain("checkpoints.note is unknown-key");
});

test("check without a key says that nobody looked at who signed, and proves less: 2", async () => {
  const [{ status, stdout }, json] = [await check(), await check("--json")];
  expect([status, json.status]).toEqual([2, 2]);
  expect(stdout).toBe(
    "2 checkpoints: who signed them was not looked at (--vkey)\n" +
      `OPEN: logs 1, entries ${ledger.size}, findings 0.\n`,
  );
  expect(JSON.parse(json.stdout)).toMatchObject({ exit: 2, unsigned: 2, findings: { count: 0 } });
});

test("check ends with 2 where nothing was there to prove, or nobody answers", async () => {
  const empty = await freshDatabase();
  undo.push(() => empty.drop());
  const nothing = await minutebook(["check"], { READER_DATABASE_URL: empty.urls.reader });
  expect([nothing.status, nothing.stdout.slice(0, 5)]).toEqual([2, "OPEN:"]);
  const closed = "postgres://minutebook_reader:x@127.0.0.1:1/minutebook";
  const absent = await minutebook(["check"], { READER_DATABASE_URL: closed });
  expect([absent.status, absent.stdout]).toEqual([2, ""]);
  expect(absent.stderr).toBe("unreachable: the database (ECONNREFUSED)\n");
});

test("a wrong password is one line that does not show it", async () => {
  const url = new URL(db.urls.reader);
  url.password = "guessed";
  const { status, stderr } = await minutebook(["check"], { READER_DATABASE_URL: url.href });
  expect(status).toBe(2);
  expect(stderr).toMatch(/^database: password authentication failed [^\n]*\(28P01\)\n$/);
  expect(stderr).not.toContain("guessed");
});

test("rebuild says what differs and changes nothing, unless it is told to write", async () => {
  expect((await rebuild()).status).toBe(0);
  await alter();
  const proof = () => check("--vkey", ledger.vkey);
  const [looked, still] = [await rebuild("--json"), await proof()];
  expect([looked.status, still.status]).toEqual([1, 1]);
  expect(JSON.parse(looked.stdout).tables).toContainEqual({
    table: "heads",
    missing: "1",
    surplus: "1",
    state: "differs",
  });
  const written = await rebuild("--write");
  expect([written.status, (await proof()).status]).toEqual([0, 0]);
  expect(written.stdout).toMatch(/heads +written +1 +1/);
  expect(written.stdout).toMatch(/^statements +equal +0 +0$/m);
  expect(written.stdout).toContain("Left alone: counter_gaps, key_marks");
});

test("rebuild does not run as a role of the service", async () => {
  const { status, stderr } = await minutebook(["rebuild", "--write"], {
    OWNER_DATABASE_URL: db.urls.writer,
  });
  expect(status).toBe(2);
  expect(stderr).toMatch(/^database: permission denied [^\n]*\(42501\)\n$/);
});

test("bootstrap and migrate make a database that the service's roles can read", async () => {
  const name = `test_command_${process.pid}`;
  const at = (url: string): string => Object.assign(new URL(url), { pathname: `/${name}` }).href;
  const environment = {
    SUPERUSER_DATABASE_URL: db.urls.superuser,
    OWNER_DATABASE_URL: at(db.urls.owner),
    DATABASE_URL: at(db.urls.writer),
    READER_DATABASE_URL: at(db.urls.reader),
    AUDITOR_DATABASE_URL: at(db.urls.auditor),
  };
  undo.push(() => db.superuser`drop database if exists ${db.superuser(name)} with (force)`);
  const steps = [
    ["bootstrap"],
    ["bootstrap"],
    ["migrate", "--check"],
    ["migrate", "--applied-by", "a test"],
    ["migrate"],
    ["migrate", "--check"],
    ["check"],
  ];
  const statuses: number[] = [];
  for (const step of steps) statuses.push((await minutebook(step, environment)).status);
  expect(statuses).toEqual([0, 0, 1, 0, 0, 0, 2]);
  const sql = connect(environment.READER_DATABASE_URL, { max: 1 });
  undo.push(() => sql.end());
  const rows = await sql`select distinct applied_by from migrations`;
  expect(rows).toEqual([{ applied_by: "a test" }]);
});

test("bootstrap refuses a URL that signs in as another role", async () => {
  const { status, stderr } = await minutebook(["bootstrap"], {
    SUPERUSER_DATABASE_URL: db.urls.superuser,
    OWNER_DATABASE_URL: db.urls.owner,
    READER_DATABASE_URL: db.urls.writer,
  });
  expect(status).toBe(2);
  expect(stderr).toMatch(/^invalid-usage: READER_DATABASE_URL must sign in as minutebook_reader /);
});

test("of a data folder, check takes the key that its service signs with, under the service's name", async () => {
  const data = await mkdtemp(join(tmpdir(), "minutebook-data-"));
  const places = dataFolder(data);
  const server = await startPostgres({ folder: places.postgres });
  undo.push(async () => {
    await server.stop();
    await removePostgres(places.postgres);
    await rm(data, { recursive: true });
  });
  await minutebook(["migrate", "--data", data]);
  const owner = connect(server.urls.owner, { max: 1 });
  undo.push(() => owner.end());
  const own = new TestLedger("d".repeat(32));
  await own.load(owner);
  const key = ensureSigningKey(places.keys.log);
  const signer = {
    name: `our.service/${own.log}`,
    publicKey: rawPublicKey(key),
    sign: (message: Uint8Array) => sign(null, message, key),
  };
  await own.seal(owner, own.size, signer);
  const named = (SERVICE_NAME: string) => minutebook(["check", "--data", data], { SERVICE_NAME });
  expect((await named("our.service")).status).toBe(0);
  const other = await named("other.service");
  expect([other.status, other.stdout]).toEqual([1, expect.stringContaining("checkpoints.note is")]);
});

test("the database of a data folder is found while it runs, and started for the work if not", async () => {
  const data = await mkdtemp(join(tmpdir(), "minutebook-data-"));
  const folder = dataFolder(data).postgres;
  const server = await startPostgres({ folder });
  undo.push(async () => {
    await server.stop();
    await removePostgres(folder);
    await rm(data, { recursive: true });
  });
  // The environment names another database: the folder that was said goes before it.
  const elsewhere = { OWNER_DATABASE_URL: db.urls.owner, READER_DATABASE_URL: db.urls.reader };
  const applied = await minutebook(["migrate", "--data", data, "--json"], elsewhere);
  expect(JSON.parse(applied.stdout).applied).toContain("0001_entries.sql");
  expect((await minutebook(["check", "--data", data], elsewhere)).status).toBe(2);
  await server.stop();
  const { status, stdout } = await minutebook(["check", "--data", data], elsewhere);
  expect([status, stdout.slice(0, 5)]).toEqual([2, "OPEN:"]);
  expect(await findPostgres(folder)).toBeUndefined();
});

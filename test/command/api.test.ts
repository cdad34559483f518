import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { demoSetup } from "../../src/command/demo.ts";
import { kidOf, NOW } from "../core/history.ts";
import { reported } from "../flow/door.ts";
import { ask, cardBody, everybody, type House, newLog, openHouse, tokenOf } from "../http/house.ts";
import { type Finished, minutebook } from "./terminal.ts";

const LATER = "2027-01-01";

let house: House;
let folder: string;
let log: string;
let token: string;

beforeAll(async () => {
  house = await openHouse();
  folder = await mkdtemp(join(tmpdir(), "minutebook-command-"));
  ({ log, token } = await newLog(house, "commands", 1));
});

afterAll(async () => {
  await house.close();
  await rm(folder, { recursive: true });
});

function command(args: readonly string[], bearer = token): Promise<Finished> {
  return minutebook(args, { MINUTEBOOK_SERVER: house.url, MINUTEBOOK_TOKEN: bearer });
}

async function jsonOf(...args: string[]): Promise<Record<string, unknown>> {
  const { status, stdout, stderr } = await command([...args, "--json"]);
  expect([status, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout);
}

async function fileWith(name: string, content: unknown): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, JSON.stringify(content));
  return file;
}

test("a log is created once, and listed", async () => {
  const create = ["log", "create", "--unique-id", "new one", "--platform", "dedicated"];
  const created = await jsonOf(...create, "--billing-from", "2026-11-01");
  expect(created["vkey"]).toContain(`/${created["log"]}+`);
  const again = await command([...create, "--billing-from", "2026-11-01"]);
  expect([again.status, again.stdout]).toEqual([1, ""]);
  expect(again.stderr).toBe(
    `log-exists: This instance has a log already (log ${created["log"]})\n`,
  );
  const { logs } = await jsonOf("log", "list");
  expect(logs).toContainEqual(
    expect.objectContaining({ log: created["log"], unique_id: "new one" }),
  );
  const table = await command(["log", "list"]);
  expect(table.stdout).toMatch(new RegExp(`^${created["log"]} +new one +dedicated +2 `, "m"));
});

test("a log is made public, and restricted again, by an entry each", async () => {
  const published = await jsonOf("log", "publish", log);
  expect(published).toMatchObject({ public: true, index: expect.any(String) });
  expect(await jsonOf("log", "publish", log)).toEqual(published);
  const restricted = await command(["log", "restrict", log]);
  const said = `: only who is entitled to may read log ${log}.\n`;
  expect([restricted.status, restricted.stdout]).toEqual([0, expect.stringContaining(said)]);
  const missing = await command(["log", "publish", "f".repeat(32)]);
  expect([missing.status, missing.stderr]).toEqual([1, expect.stringMatching(/^not-found: /)]);
});

test("an enrolment by command gives a token, and names what is wrong with a runner", async () => {
  const enrol = ["enrol", "--log", log, "--claim-seconds", "60", "--runner"];
  const enrolled = await command([
    ...enrol,
    "uuid=second,id=8,tracking=hosted,type=instance,machine=small",
  ]);
  expect([enrolled.status, enrolled.stdout]).toEqual([
    0,
    expect.stringMatching(/^[\w-]{43}\nShown once; to be claimed until 20\S+Z\.\n$/),
  ]);
  const refused = await command([
    ...enrol,
    "uuid=third,id=x,tracking=hosted,type=instance,machine=small",
  ]);
  expect([refused.status, refused.stderr]).toEqual([
    1,
    expect.stringMatching(
      /^invalid-request: [^\n]+ \(members runners\.0\.runner_id; not_allowed runners\.0\.runner_id\)\n$/,
    ),
  ]);
});

test("cards, classes and limits are entries of the log", async () => {
  const card = await fileWith("card.json", {
    ...cardBody(),
    effective_from: `${LATER}T00:00:00.000Z`,
  });
  const from = ["--log", log, "--from", LATER];
  const receipts = [
    await jsonOf("card", "add", card, "--log", log),
    await jsonOf("class", "set", ...from, "--project", "10", "--class", "open_source"),
    await jsonOf("limit", "set", ...from, "--namespace", "1", "--minutes", "10000"),
  ];
  const [first = Number.NaN] = receipts.map(({ index }) => Number(index));
  expect(receipts.map(({ index }) => Number(index))).toEqual([first, first + 1, first + 2]);
  const pack = ["pack", "set", "--log", log, "--namespace", "1", "--pack", "order-1"];
  const bought = await command([...pack, "--minutes", "5000", "--expires", "2027-01"]);
  const said = `Entry ${first + 3}: pack order-1 of 5000 minutes.\n`;
  expect([bought.status, bought.stdout]).toEqual([0, said]);
  const stale = ["limit", "set", ...from, "--namespace", "1", "--minutes", "1"];
  const { status, stderr } = await command([...stale, "--source-version", "1"]);
  expect([status, stderr.slice(0, 21)]).toEqual([1, "stale-source-version:"]);
});

test("a key is revoked, also one whose name begins with a dash, and listed as that", async () => {
  const revoke = (kid: string) =>
    command([
      ...["key", "revoke", "--log", log, "--kid", kid],
      ...["--last-trusted-counter", "5", "--reason", "the host was lost"],
    ]);
  const unknown = await revoke(`-${kidOf(1).slice(1)}`);
  expect([unknown.status, unknown.stderr.slice(0, 10)]).toEqual([1, "not-found:"]);
  const before = await command(["key", "list", "--log", log]);
  expect(before.stdout).toMatch(new RegExp(`^${kidOf(1)} +\\d+ +1 +current$`, "m"));
  expect((await revoke(kidOf(1))).status).toBe(0);
  const after = await command(["key", "list", "--log", log]);
  expect(after.stdout).toMatch(new RegExp(`^${kidOf(1)} +\\d+ +1 +revoked +5$`, "m"));
});

test("usage is a table, JSON or CSV of the same figures", async () => {
  const { status } = await ask(house, "POST /v1/reports", { jose: reported(1, log) });
  expect(status).toBe(201);
  const usage = [
    "usage",
    "--log",
    log,
    "--fresh",
    "--month",
    NOW.slice(0, 7),
    "--group",
    "tracking",
  ];
  const { as_of, totals } = await jsonOf(...usage);
  expect(totals).toMatchObject({ jobs: "1", compute_ms: "60000.000000" });
  const [table, csv] = [await command(usage), await command([...usage, "--csv"])];
  expect(table.stdout.split("\n").map((line) => line.trim().split(/ {2,}/))).toEqual([
    expect.arrayContaining(["billing_month", "tracking", "jobs", "compute_ms"]),
    expect.arrayContaining(["2026-11-01", "hosted", "1", "60000.000000"]),
    expect.arrayContaining(["total", "1", "60000.000000"]),
    [`As of ${as_of} entries, not all of it sealed.`],
    [""],
  ]);
  expect(csv.stdout).toContain(`\r\n${log},${as_of},false,2026-11-01,hosted,1,60000,60000.000000,`);
});

test("a set-up file becomes logs, with a token for each agent", async () => {
  const setup = await fileWith("setup.json", demoSetup("demo", Date.parse(NOW)));
  const { instances } = await jsonOf("setup", setup);
  expect(instances).toEqual([
    expect.objectContaining({ host: "gitlab.example", tokens: [expect.any(String)] }),
  ]);
  const again = await command(["setup", setup]);
  expect([again.status, again.stderr.slice(0, 11)]).toEqual([1, "log-exists:"]);
});

test("who may not is told what somebody is told who asks for what is not there", async () => {
  const viewer = await tokenOf(["viewer"]);
  const forbidden = await command(["log", "list"], viewer);
  const absent = await command(["key", "list", "--log", "f".repeat(32)], await everybody());
  expect([forbidden.status, absent.status]).toEqual([1, 1]);
  expect(forbidden.stderr).toBe(absent.stderr);
  const nobody = await command(["log", "list"], "nonsense");
  expect([nobody.status, nobody.stderr.slice(0, 16)]).toEqual([1, "unauthenticated:"]);
});

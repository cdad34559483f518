/** `minutebook export`: into a folder and a bucket, over a network that breaks, by a process that is killed. */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  expect,
  onTestFinished,
  test,
  vi,
} from "vitest";
import { parseManifest } from "../../src/flow/export/read.ts";
import { compiled } from "../compile.ts";
import { reported } from "../flow/door.ts";
import { ask, type House, newLog, openHouse, sealedSize, tokenOf } from "../http/house.ts";
import { BUCKET, startS3 } from "../s3.ts";
import { type Cutting, startCutting } from "./cutting.ts";
import { type Finished, minutebook } from "./terminal.ts";

const BUILDS = 200;
const MAIN = compiled(new URL("../../src/main.ts", import.meta.url));

let house: House;
let log: string;
let token: string;
let size: string;
let cutting: Cutting;
let out: string;
beforeAll(async () => {
  house = await openHouse();
  ({ log } = await newLog(house, "exported by command", 1));
  token = await tokenOf(["finance"]);
  const reports = Array.from({ length: BUILDS }, (_, i) => {
    return reported(1, log, { counter: String(i + 1), job: { id: String(i + 1) } });
  });
  await ask(house, "POST /v1/reports", { json: { reports } });
  size = await sealedSize(house, log);
  cutting = await startCutting(house.url);
});
afterAll(async () => {
  await cutting.close();
  await house.close();
});
beforeEach(async () => {
  out = await mkdtemp(join(tmpdir(), "minutebook-out-"));
  Object.assign(cutting, { ranges: [], cut: () => undefined });
});
afterEach(() => rm(out, { recursive: true }));

const surroundings = () => ({ MINUTEBOOK_SERVER: cutting.url, MINUTEBOOK_TOKEN: token });

function exporting(...args: string[]): Promise<Finished> {
  return minutebook(["export", ...args, "--log", log], surroundings());
}

/** As it is in its folder, after its manifest. */
async function assertWhole(): Promise<void> {
  const file = `entries-${size}.csv`;
  const names = [file, `${file}.manifest.json`, `${file}.manifest.note`];
  expect((await readdir(out)).sort(), "and nothing else").toEqual(names);
  const content = await readFile(join(out, file));
  const manifest = parseManifest(await readFile(join(out, `${file}.manifest.json`), "utf8"));
  expect(createHash("sha256").update(content).digest("base64")).toBe(manifest.sha256);
  expect(manifest.rows).toBe(size);
}

test("an export comes into a folder with its manifest and note, and is listed", async () => {
  const { status, stderr, stdout } = await exporting("entries", "--out", out);
  expect([status, stderr]).toEqual([0, ""]);
  expect(stdout).toContain(`entries-${size}.csv: `);
  await assertWhole();
  const list = await minutebook(["exports", "--log", log], surroundings());
  expect(list.stdout).toMatch(new RegExp(`entries-${size}\\.csv +done +[0-9]+ `));
  const earlier = await exporting("entries", "--out", out, "--as-of", "5", "--json");
  expect(JSON.parse(earlier.stdout)).toMatchObject({ file: "entries-5.csv", as_of: "5" });
});

test("a connection that breaks again and again is made again, and only what is missing is fetched", async () => {
  cutting.cut = (number) => (number <= 7 ? "broken" : undefined);
  const { status, stderr } = await exporting("entries", "--out", out);
  expect([status, stderr]).toEqual([0, ""]);
  await assertWhole();
  expect(cutting.ranges).toEqual(Array.from({ length: 8 }, (_, i) => `bytes=${i * 1_000}-`));
});

test("killed with -9 in the middle, the next one goes on with what is there, to the same bytes", async () => {
  cutting.cut = () => "silent";
  const args = [MAIN, "export", "entries", "--log", log, "--out", out];
  const env = { ...process.env, ...surroundings() };
  const child = spawn(process.execPath, args, { env, stdio: "inherit" });
  onTestFinished(() => void child.kill("SIGKILL"));
  const part = join(out, `entries-${size}.csv.part`);
  const written = async () => (await stat(part).catch(() => undefined))?.size === 1_000;
  await vi.waitUntil(written, { timeout: 30_000 });
  child.kill("SIGKILL");
  await once(child, "exit");
  cutting.cut = () => undefined;
  expect((await exporting("entries", "--out", out)).status).toBe(0);
  await assertWhole();
  expect(cutting.ranges).toEqual(["bytes=0-", "bytes=1000-"]);
});

test("what is not the file of its manifest is away again, and the next one is whole", async () => {
  // Somebody else's bytes lie where the rest is to be added to.
  const part = join(out, `entries-${size}.csv.part`);
  await writeFile(part, "x".repeat(1_500));
  const { status, stderr } = await exporting("entries", "--out", out);
  expect(status).toBe(2);
  expect(stderr).toMatch(/^not-whole: /);
  expect(await readdir(out)).not.toContain(`entries-${size}.csv.part`);
  expect((await exporting("entries", "--out", out)).status).toBe(0);
  await assertWhole();
});

test("until an export is whole, what lay there before keeps its manifest and note", async () => {
  const path = join(out, `entries-${size}.csv`);
  const before = [path, `${path}.manifest.json`, `${path}.manifest.note`];
  for (const name of before) await writeFile(name, "of another export");
  await writeFile(`${path}.part`, "x".repeat(1_500));
  expect((await exporting("entries", "--out", out)).status).toBe(2);
  for (const name of before) expect(await readFile(name, "utf8")).toBe("of another export");
  expect((await exporting("entries", "--out", out)).status).toBe(0);
  await assertWhole();
});

test("all exports of a log are listed, however many there are", async () => {
  const { database } = house;
  const count = async () => {
    const listed = await minutebook(["exports", "--log", log, "--json"], surroundings());
    return new Set(JSON.parse(listed.stdout).exports.map(({ id }: { id: string }) => id)).size;
  };
  const before = await count();
  await database.writer`
    insert into exports (log, id, name, format, parameters, as_of, checkpoint_size, checkpoint_root, asked_by,
      asked_at, state, error, ended_at)
    select ${log}, md5(i::text), 'entries', 'csv', '{}', 1, 1, '', '', now(), 'failed', 'internal', now()
    from generate_series(1, 1001) as i`;
  expect(await count()).toBe(before + 1_001);
});

test("an export goes into a bucket as it goes into a folder, over a network that breaks", async () => {
  const bucket = await startS3();
  onTestFinished(() => bucket.close());
  const place = bucket.url.replace(`${BUCKET}?`, `${BUCKET}/finance?`);
  cutting.cut = (number) => (number === 1 ? "broken" : undefined);
  const { status, stderr } = await exporting("entries", "--out", place);
  expect([status, stderr]).toEqual([0, ""]);
  const file = `finance/entries-${size}.csv`;
  const names = [file, `${file}.manifest.json`, `${file}.manifest.note`];
  expect([...bucket.objects.keys()].sort()).toEqual(names);
  const manifest = parseManifest(String(bucket.objects.get(`${file}.manifest.json`)?.bytes));
  const content = bucket.objects.get(file)?.bytes ?? Buffer.of();
  expect(createHash("sha256").update(content).digest("base64")).toBe(manifest.sha256);
});

test("over a file of another log, of the same name, nothing is written: in a folder and in a bucket", async () => {
  const bucket = await startS3();
  onTestFinished(() => bucket.close());
  const file = `entries-${size}.csv`;
  for (const place of [out, bucket.url]) await exporting("entries", "--out", place);
  const path = join(out, `${file}.manifest.json`);
  const others = (await readFile(path, "utf8")).replace(log, "f".repeat(32));
  await writeFile(path, others);
  const stored = bucket.objects.get(`${file}.manifest.json`);
  if (stored === undefined) throw new Error("nothing came into the bucket");
  stored.bytes = Buffer.from(others);
  for (const place of [out, bucket.url]) {
    const { status, stderr } = await exporting("entries", "--out", place);
    expect([status, stderr]).toMatchObject([
      2,
      expect.stringMatching(/^unwritable: .*another log/),
    ]);
  }
  expect(await readFile(path, "utf8")).toBe(others);
  expect(String(bucket.objects.get(`${file}.manifest.json`)?.bytes)).toBe(others);
});

test.each([
  [["nothing"], 2, /^invalid-usage: .*choices/],
  [["portal"], 1, /^invalid-request: .*missing month/],
  [["entries", "--as-of", "999999"], 1, /^not-sealed: /],
])("export %j is refused in one line", async (args, status, line) => {
  const refused = await exporting(...args, "--out", out);
  expect([refused.status, refused.stdout]).toEqual([status, ""]);
  expect(refused.stderr).toMatch(line);
});

test("a place that takes no files is said by its code", async () => {
  const file = join(out, "file");
  await writeFile(file, "");
  const folder = await exporting("entries", "--out", file);
  expect([folder.status, folder.stderr]).toMatchObject([
    2,
    expect.stringMatching(/^unreadable-file: E/),
  ]);
  // A folder that is there and takes none: Node's own way to make those above as well never ends.
  const nowhere = await exporting("entries", "--out", "/proc/none/exports");
  expect([nowhere.status, nowhere.stderr]).toEqual([2, "unwritable: /proc/none/exports: ENOENT\n"]);
  const none = await exporting("entries", "--out", "s3://bucket?strange=1");
  expect(none.stderr).toMatch(/^invalid-usage: /);
});

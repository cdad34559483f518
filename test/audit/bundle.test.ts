import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { compiled } from "../compile.ts";
import { testKey } from "../signing.ts";
import { checkpointOf, type Files, filesOf, signer, vkeyText } from "./archive.ts";
import { command, openHome } from "./command.ts";
import { longLog } from "./honest.ts";
import { LOG_ID } from "./log.ts";
import { type Lie, type LogServer, serveFiles } from "./server.ts";

const home = openHome();
afterAll(() => home.remove());
const log = longLog(1_500);
const SIZES = [5, 700, 1_100];
const FILES = filesOf(log, SIZES);
const GROWN = filesOf(log, [...SIZES, 1_500]);
const VKEY = ["--vkey", vkeyText()];

let folders = 0;
let folder = "";
beforeEach(() => {
  folder = join(home.folder, String(folders++));
});
const servers: LogServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function serve(files: Files, sizes: number[] = SIZES, lie?: Lie): Promise<LogServer> {
  const server = await serveFiles(files, { sizes, ...(lie && { lie }) });
  servers.push(server);
  return server;
}

/** Every file below the log's folder. */
function held(): Map<string, Buffer> {
  const root = join(folder, LOG_ID);
  const names = existsSync(root) ? readdirSync(root, { recursive: true, encoding: "utf8" }) : [];
  const files = names.filter((name) => /(?:[0-9]{3}|p\/[0-9]+|checkpoint\/[0-9]+)$/.test(name));
  return new Map(
    files.flatMap((name) => {
      try {
        return [[name, readFileSync(join(root, name))]];
      } catch {
        return []; // a folder
      }
    }),
  );
}

/** All that is there is what the honest log has. */
function expectProven(files: Files): void {
  for (const [name, bytes] of held()) {
    expect(bytes.equals(files.get(name) ?? new Uint8Array()), name).toBe(true);
  }
}

test("a log is fetched whole, and what was fetched is verified offline", async () => {
  const { url } = await serve(FILES);
  const fetched = await command("bundle", url, folder, ...VKEY);
  expect(fetched).toMatchObject({
    exit: 0,
    err: "",
    out: expect.stringContaining("3 checkpoints"),
  });
  expectProven(FILES);
  const { exit, out } = await command("verify", folder, ...VKEY, "--json");
  expect([exit, JSON.parse(out).logs[0].size]).toEqual([0, "1100"]);
});

test("a second time nothing is fetched but the checkpoints, and later only what is new", async () => {
  const { asked, url } = await serve(FILES);
  expect((await command("bundle", url, folder, ...VKEY)).exit).toBe(0);
  asked.length = 0;
  const again = await command("bundle", url, folder, ...VKEY);
  expect(again).toMatchObject({ exit: 0, out: expect.stringContaining("0 files written") });
  expect(asked.filter((path) => path.startsWith("tile/entries/"))).toEqual([]);
  const later = await serve(GROWN, [...SIZES, 1_500]);
  const grown = await command("bundle", later.url, folder, ...VKEY);
  expect(grown).toMatchObject({ exit: 0, out: expect.stringContaining("with checkpoint 1100") });
  expect(later.asked.filter((path) => path.startsWith("tile/entries/")).sort()).toEqual([
    "tile/entries/004",
    "tile/entries/005.p/220",
  ]);
  expectProven(GROWN);
  expect((await command("verify", folder, ...VKEY)).exit).toBe(0);
});

test("a file that was damaged since is fetched again", async () => {
  const { url } = await serve(FILES);
  await command("bundle", url, folder, ...VKEY);
  for (const path of ["tile/0/001", "tile/entries/002", "tile/1/000.p/4"]) {
    writeFileSync(join(folder, LOG_ID, path), "damaged");
  }
  const again = await command("bundle", url, folder, ...VKEY);
  expect(again).toMatchObject({ exit: 0, out: expect.stringContaining("3 files written") });
  expectProven(FILES);
});

test("a range has its bundles and what proves them, and is verified as a range", async () => {
  const { asked, url } = await serve(FILES);
  const range = ["--from", "300", "--to", "599"];
  expect((await command("bundle", url, folder, ...VKEY, ...range)).exit).toBe(0);
  expect(asked.filter((path) => path.startsWith("tile/entries/")).sort()).toEqual([
    "tile/entries/001",
    "tile/entries/002",
  ]);
  const proven = await command("verify", folder, ...VKEY, ...range);
  expect(proven).toMatchObject({ exit: 0, out: expect.stringContaining("entries 300 to 599") });
  // Nothing is said of what is not there, and the whole log is not proven by its part.
  expect((await command("verify", folder, ...VKEY, "--from", "0", "--to", "9")).exit).toBe(1);
  expect((await command("verify", folder, ...VKEY)).exit).toBe(1);
  expect((await command("verify", folder, ...VKEY, "--from", "9", "--to", "5")).exit).toBe(2);
  const checkpoint = ["--checkpoint", join(folder, LOG_ID, "checkpoint/1100")];
  expect((await command("verify", folder, ...VKEY, ...range, ...checkpoint)).exit).toBe(2);
  expect((await command("bundle", url, folder, ...VKEY, "--to", "1100")).exit).toBe(2);
  expect((await command("bundle", url, folder, ...VKEY)).exit).toBe(0);
  expect((await command("verify", folder, ...VKEY)).exit).toBe(0);
});

test("a range with an entry that is not the log's is found, with its index", async () => {
  const { url } = await serve(FILES);
  await command("bundle", url, folder, ...VKEY);
  const path = join(folder, LOG_ID, "tile/entries/001");
  const bytes = readFileSync(path);
  bytes[bytes.length - 40] = 0x7e;
  writeFileSync(path, bytes);
  const { exit, out } = await command("verify", folder, ...VKEY, "--from", "300", "--json");
  expect(exit).toBe(1);
  const [{ findings, range }] = JSON.parse(out).logs;
  expect(findings.first).toMatchObject({ code: "entry-altered", index: "511" });
  expect(range).toEqual({ first: "300", last: "1099" });
});

const CUT = FILES.get("tile/entries/002")?.subarray(0, -1);

test.each([
  ["a wrong tile", "tile/0/002", new Uint8Array(8_192), "tile-hash"],
  ["a tile of another width", "tile/0/002", new Uint8Array(100), "tile-width"],
  ["a wrong edge", "tile/1/000.p/4", new Uint8Array(128), "checkpoint-root"],
  ["a bundle cut short", "tile/entries/002", CUT, "bundle-width"],
  ["other entries", "tile/entries/002", FILES.get("tile/entries/001"), "entry-altered"],
  ["no tile", "tile/0/003", undefined, "tile-missing"],
  ["no bundle", "tile/entries/003", undefined, "bundle-missing"],
  ["another root", "checkpoint/700", checkpointOf(log, 700, new Uint8Array(32)), "checkpoint-root"],
])("a server that has %s is found, and none of it is kept", async (_, path, bytes, code) => {
  const lie: Lie = (asked, answer) => {
    if (asked !== path) return false;
    if (bytes === undefined) answer.writeHead(404);
    answer.end(bytes);
    return true;
  };
  const { url } = await serve(FILES, SIZES, lie);
  const { exit, out } = await command("bundle", url, folder, ...VKEY);
  expect(exit).toBe(1);
  expect(out).toMatch(new RegExp(`FOUND: \\S+: ${code}: `));
  expectProven(FILES);
  expect(existsSync(join(folder, LOG_ID, "checkpoint/1100"))).toBe(false);
});

/** The same log up to its 900th entry, and from there on another truth, honestly signed. */
function forkOf(size: number): Files {
  const fork = longLog(900);
  while (fork.size < size) fork.force("conflict", { jws: "another truth", stands: "0" });
  return filesOf(fork, [size]);
}

test.each([1_300, 1_100, 1_000])(
  "a log that forked is an alarm with both checkpoints at %i entries, and nothing is changed",
  async (size) => {
    const { url } = await serve(FILES);
    await command("bundle", url, folder, ...VKEY);
    const before = held();
    const forked = await serve(forkOf(size), []);
    const split = await command("bundle", forked.url, folder, ...VKEY);
    expect(split).toMatchObject({ exit: 1, out: expect.stringContaining("a split view") });
    for (const one of [1_100, size]) expect(split.out).toContain(`\n${one}\n`);
    expect(split.out.match(/---- signed ----/g)).toHaveLength(2);
    expect(held()).toEqual(before);
  },
);

test("another root of the copy's size is an alarm though the server gives no tile", async () => {
  const { url } = await serve(FILES);
  await command("bundle", url, folder, ...VKEY);
  const lie: Lie = (path, answer) => {
    if (!path.startsWith("tile/")) return false;
    answer.writeHead(503, { "retry-after": "0" }).end();
    return true;
  };
  const forked = await serve(forkOf(1_100), [], lie);
  const split = await command("bundle", forked.url, folder, ...VKEY);
  expect(split).toMatchObject({ exit: 1, out: expect.stringContaining("a split view") });
});

test("a mirror that lags is older than the copy, and accused of nothing", async () => {
  const { url } = await serve(FILES);
  await command("bundle", url, folder, ...VKEY);
  const before = held();
  const mirror = await serve(filesOf(log, [5, 700]), [5, 700]);
  const older = await command("bundle", mirror.url, folder, ...VKEY);
  expect(older).toMatchObject({ exit: 2, out: "", err: expect.stringContaining("older than the") });
  expect(held()).toEqual(before);
  rmSync(join(folder, LOG_ID, "tile/1/000.p/4"));
  const lacking = await command("bundle", mirror.url, folder, ...VKEY);
  expect(lacking).toMatchObject({ exit: 2, err: expect.stringContaining("lacks") });
});

test("archived checkpoints by keys that were not given are left out, and that is said", async () => {
  const stranger = checkpointOf(log, 700, undefined, [signer(LOG_ID, testKey(9))]);
  const { url } = await serve(new Map(FILES).set("checkpoint/700", stranger));
  const { exit, out } = await command("bundle", url, folder, ...VKEY);
  expect([exit, out]).toEqual([0, expect.stringContaining("2 checkpoints; 1 by keys")]);
  expect(existsSync(join(folder, LOG_ID, "checkpoint/700"))).toBe(false);
});

test("a checkpoint with fewer signatures never takes the place of one with more", async () => {
  const cosigned = Buffer.concat([
    FILES.get("checkpoint/1100") ?? NOTHING,
    Buffer.from(`\u2014 witness.example ${Buffer.alloc(76).toString("base64")}\n`),
  ]);
  const rich = await serve(new Map(FILES).set("checkpoint/1100", cosigned));
  expect((await command("bundle", rich.url, folder, ...VKEY)).exit).toBe(0);
  const poor = await serve(FILES);
  expect((await command("bundle", poor.url, folder, ...VKEY)).exit).toBe(0);
  expect(held().get("checkpoint/1100")).toEqual(cosigned);
});

test("an older checkpoint that the copy holds with another root is an alarm too", async () => {
  const { url } = await serve(FILES);
  await command("bundle", url, folder, ...VKEY);
  const other = checkpointOf(log, 700, new Uint8Array(32));
  writeFileSync(join(folder, LOG_ID, "checkpoint/700"), other);
  const split = await command("bundle", url, folder, ...VKEY);
  expect(split).toMatchObject({ exit: 1, out: expect.stringContaining("a split view") });
  expect(held().get("checkpoint/700")?.equals(other)).toBe(true);
});

const NOTHING = new Uint8Array();

test("what no trusted key has signed is not fetched", async () => {
  const { asked, url } = await serve(FILES);
  const other = vkeyText("ffeeddccbbaa99887766554433221100");
  expect((await command("bundle", url, folder, "--vkey", other)).exit).toBe(2);
  expect(asked).toEqual(["checkpoint"]);
});

test("killed after any file, the same command goes on from there, and no file is half", async () => {
  const cli = compiled(new URL("../../audit/cli.ts", import.meta.url));
  let count = 0;
  let stopAt = 3;
  let child: ReturnType<typeof spawn> | undefined;
  const lie: Lie = () => {
    count += 1;
    if (count === stopAt) child?.kill("SIGKILL");
    return false;
  };
  const { url } = await serve(FILES, SIZES, lie);
  for (stopAt of [3, 8, 13]) {
    count = 0;
    child = spawn(process.execPath, [cli, "bundle", url, folder, ...VKEY, "--at-once", "1"]);
    const [, signal] = await once(child, "exit");
    expect(signal).toBe("SIGKILL");
    expectProven(FILES);
    expect(existsSync(join(folder, LOG_ID, "checkpoint/1100"))).toBe(false);
  }
  expect((await command("bundle", url, folder, ...VKEY)).exit).toBe(0);
  expect((await command("verify", folder, ...VKEY)).exit).toBe(0);
  expect(readdirSync(folder)).not.toContain(".staging");
  rmSync(folder, { recursive: true });
});

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { serverAccount } from "../src/embedded/account.ts";
import { untilFree } from "../src/embedded/postmaster.ts";
import { type Embedded, findPostgres, removePostgres, startPostgres } from "../src/embedded.ts";
import { connect } from "../src/store/connect.ts";
import { compiled } from "./compile.ts";

const IN_USE = { code: "data-folder-in-use" };

// Each test has a folder of its own; what it started is stopped even if it fails.
let root: string;
let folder: string;
const servers: Embedded[] = [];
const launchers: ChildProcess[] = [];

/** Of a server that was started, and ended, once. */
let used: string;

beforeAll(async () => {
  used = join(await newRoot(), "postgres");
  await (await startPostgres({ folder: used })).stop();
});
afterAll(() => rm(dirname(used), { recursive: true }));
beforeEach(async () => {
  root = await newRoot();
  folder = join(root, "postgres");
});
afterEach(async () => {
  for (const launcher of launchers.splice(0)) launcher.kill("SIGKILL");
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  await removePostgres(folder);
  await rm(root, { recursive: true });
});

async function newRoot(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "minutebook-embedded-"));
  await chmod(made, 0o755);
  return made;
}

/** For what is not about a first start: that makes a cluster, which takes longer than all the rest. */
function makeUsed(): void {
  if (!existsSync(folder)) execFileSync("cp", ["-Rp", used, folder]);
}

async function start(settings: Record<string, string> = {}, first = false): Promise<Embedded> {
  if (!first) makeUsed();
  const server = await startPostgres({ folder, settings });
  servers.push(server);
  return server;
}

/** What psql would print, as rows. */
async function ask(url: string, ...statements: string[]): Promise<unknown[]> {
  const sql = connect(url, { max: 1 });
  try {
    let rows: unknown[] = [];
    for (const statement of statements) rows = [...(await sql.unsafe(statement))];
    return rows;
  } finally {
    await sql.end();
  }
}

const KEEP = ["create table kept (x int)", "insert into kept values (1)"];
const KEPT = "select x from kept";

test("a running server is found by its folder, and no longer once it has ended", async () => {
  expect(await findPostgres(folder)).toBeUndefined();
  const server = await start({}, true);
  expect(await findPostgres(folder)).toEqual(server.urls);
  await server.stop();
  expect(await findPostgres(folder)).toBeUndefined();
});

test("what was committed is there after kill -9 of the server", async () => {
  const first = await start();
  await ask(first.urls.owner, ...KEEP);
  await first.kill9();
  expect(await readdir(first.data)).toContain("postmaster.pid");
  const second = await start();
  expect(await ask(second.urls.owner, KEPT)).toEqual([{ x: 1 }]);
});

test("stop leaves no process and no lock, and the data for the next start", async () => {
  const first = await start();
  await ask(first.urls.owner, ...KEEP);
  await first.stop();
  expect(await readdir(first.data)).not.toContain("postmaster.pid");
  await expect(ask(first.urls.owner, "select 1")).rejects.toMatchObject({ code: "ECONNREFUSED" });
  expect(await ask((await start()).urls.owner, KEPT)).toEqual([{ x: 1 }]);
});

test("a folder that is in use is neither started again nor removed, and its server goes on", async () => {
  const { urls } = await start();
  await expect(startPostgres({ folder })).rejects.toMatchObject(IN_USE);
  await expect(removePostgres(folder)).rejects.toMatchObject(IN_USE);
  expect(await ask(urls.reader, "select 1 as one")).toEqual([{ one: 1 }]);
});

test("of two first starts at once one has the folder, and the other is told so", async () => {
  const outcomes = await Promise.allSettled([start({}, true), start({}, true)]);
  const refused = outcomes.filter((outcome) => outcome.status === "rejected");
  expect(refused.map(({ reason }) => reason)).toEqual([expect.objectContaining(IN_USE)]);
  const made = ["data", "postgres.json", "postgres.log", "socket"];
  expect((await readdir(folder)).sort()).toEqual(made);
});

test("a first start that was cut short is finished by the next", async () => {
  const first = await start();
  const admin = first.urls.superuser.replace(/minutebook$/, "postgres");
  await ask(admin, "drop database minutebook", "drop role minutebook_auditor");
  await first.stop();
  const second = await start();
  expect(await ask(second.urls.auditor, "select 1 as one")).toEqual([{ one: 1 }]);
});

/** Another Node process that starts a server and then stays until its stdin ends. */
async function launch(): Promise<ChildProcess> {
  makeUsed();
  const script = `
    const { startPostgres } = await import(${JSON.stringify(compiled(new URL("../src/embedded.ts", import.meta.url)))});
    await startPostgres({ folder: ${JSON.stringify(folder)} });
    console.log("started");
    process.stdin.resume();
  `;
  const launcher = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    stdio: ["pipe", "pipe", "inherit"],
    detached: true,
  });
  launchers.push(launcher);
  if (launcher.stdout === null) throw new Error("launch: no stdout");
  await once(launcher.stdout, "data");
  return launcher;
}

test.each<[string, (launcher: ChildProcess) => unknown]>([
  ["is killed with -9", (launcher) => launcher.kill("SIGKILL")],
  ["gets Ctrl-C with its whole group", ({ pid = 0 }) => process.kill(-pid, "SIGINT")],
  ["hangs up", (launcher) => launcher.kill("SIGHUP")],
  ["simply comes to its end", (launcher) => launcher.stdin?.end()],
])("no server outlives its launcher that %s", async (_, end) => {
  const launcher = await launch();
  end(launcher);
  await once(launcher, "exit");
  const data = join(folder, "data");
  await untilFree(data);
  // Told to stop, not killed: a clean shutdown takes its lock along.
  expect(await readdir(data)).not.toContain("postmaster.pid");
  expect(await readFile(join(folder, "postgres.log"), "utf8")).toContain(
    "database system is shut down",
  );
});

test("a start right after kill -9 of the launcher waits for its server to leave", async () => {
  const launcher = await launch();
  launcher.kill("SIGKILL");
  expect(await ask((await start()).urls.writer, "select 1 as one")).toEqual([{ one: 1 }]);
});

/** Writes another process into the lock, as one would see it from another container. */
async function renumber(data: string, pid: number | undefined): Promise<() => Promise<void>> {
  const lock = join(data, "postmaster.pid");
  const before = await readFile(lock, "utf8");
  const [, ...lines] = before.split("\n");
  await writeFile(lock, [pid, ...lines].join("\n"));
  return () => writeFile(lock, before);
}

function startStranger(): ChildProcess {
  const stranger = spawn("sleep", ["60"], { ...serverAccount(), cwd: "/" });
  launchers.push(stranger);
  return stranger;
}

test("a lock that names somebody else's process by now is stale", async () => {
  const first = await start();
  await first.kill9();
  const stranger = startStranger();
  await renumber(first.data, stranger.pid);
  expect(await ask((await start()).urls.writer, "select 1 as one")).toEqual([{ one: 1 }]);
  expect(stranger.exitCode).toBeNull();
});

/** A number that no process has. */
const NOBODY = 2 ** 22 - 1;

test.each<[string, () => number | undefined]>([
  ["another program", () => startStranger().pid],
  ["nothing", () => NOBODY],
])(
  "a server in another container, whose number is that of %s here, keeps its lock and goes on",
  async (_, pid) => {
    const { data, urls } = await start();
    const restore = await renumber(data, pid());
    const lock = await readFile(join(data, "postmaster.pid"), "utf8");
    await expect(startPostgres({ folder })).rejects.toMatchObject({
      ...IN_USE,
      message: expect.stringContaining("of another container"),
    });
    await expect(removePostgres(folder)).rejects.toMatchObject(IN_USE);
    expect(await findPostgres(folder)).toBeUndefined();
    expect(await readFile(join(data, "postmaster.pid"), "utf8")).toBe(lock);
    await restore();
    expect(await ask(urls.reader, "select 1 as one")).toEqual([{ one: 1 }]);
  },
);

test("where nothing tells whether a lock is stale, it stays, and the failure says what to do", async () => {
  const first = await start();
  await first.kill9();
  await renumber(first.data, startStranger().pid);
  await rm(first.socket);
  await expect(startPostgres({ folder })).rejects.toThrow(/another program.* remove that file/);
  expect(await readdir(first.data)).toContain("postmaster.pid");
  await rm(join(first.data, "postmaster.pid"));
  expect(await ask((await start()).urls.writer, "select 1 as one")).toEqual([{ one: 1 }]);
});

test("a folder that the server's account cannot enter still gets its database, and is told where", async () => {
  await chmod(root, 0o700);
  const told: string[] = [];
  const server = await startPostgres({ folder, log: (line) => told.push(line) });
  servers.push(server);
  await ask(server.urls.owner, ...KEEP);
  // Only root lends its server another account; for others the folder is their own.
  const asRoot = process.getuid?.() === 0;
  expect(server.data === join(folder, "data")).toBe(!asRoot);
  expect(told.length).toBe(asRoot ? 1 : 0);
  await server.stop();
  const again = await start();
  expect(again.data).toBe(server.data);
  expect(await ask(again.urls.owner, KEPT)).toEqual([{ x: 1 }]);
  await again.stop();
  await removePostgres(folder);
  await expect(stat(server.data)).rejects.toMatchObject({ code: "ENOENT" });
  expect(await readdir(root)).toEqual([]);
});

test("a folder with a long path gets a socket with a short one", async () => {
  folder = join(root, "long".repeat(20), "postgres");
  const { socket } = await start({}, true);
  expect(Buffer.byteLength(socket)).toBeLessThan(104);
  const connection = net.connect(socket);
  await once(connection, "connect");
  connection.destroy();
  await servers.pop()?.stop();
  await removePostgres(folder);
  await expect(stat(socket)).rejects.toMatchObject({ code: "ENOENT" });
});

test("passwords are in a file of mode 0600, and a wrong one is refused on every way in", async () => {
  const { urls } = await start({}, true);
  expect((await stat(join(folder, "postgres.json"))).mode & 0o777).toBe(0o600);
  expect(new Set(Object.values(urls).map((url) => new URL(url).password)).size).toBe(5);
  for (const url of Object.values(urls)) {
    const wrong = new URL(url);
    wrong.password = "wrong";
    await expect(ask(wrong.href, "select 1")).rejects.toMatchObject({ code: "28P01" });
  }
});

test("commits are durable, and settings can be added", async () => {
  const { urls } = await start({ commit_delay: "1000", commit_siblings: "0" });
  const names = ["fsync", "synchronous_commit", "full_page_writes", "commit_delay"];
  const settings = names.map((name) => `current_setting('${name}') as ${name}`);
  expect(await ask(urls.superuser, `select ${settings}`)).toEqual([
    { fsync: "on", synchronous_commit: "on", full_page_writes: "on", commit_delay: "1000" },
  ]);
});

test("a setting that the server refuses is a clear failure that leaves nothing running", async () => {
  await expect(start({ shared_buffers: "nonsense" })).rejects.toMatchObject({
    code: "start-failed",
    message: expect.stringContaining('invalid value for parameter "shared_buffers"'),
  });
  await untilFree(join(folder, "data"));
});

test("what is not ours is neither used nor removed", async () => {
  await start();
  await servers.pop()?.stop();
  await writeFile(join(folder, "notes.txt"), "mine");
  await removePostgres(folder);
  expect(await readdir(folder)).toEqual(["notes.txt"]);
  await writeFile(join(folder, "postgres.json"), "{}");
  await expect(start()).rejects.toMatchObject({ code: "data-folder-unusable" });
  await rm(join(folder, "postgres.json"));
});

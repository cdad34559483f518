/** An export from the asking to its last byte, and what may come in between. */
import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { exportText } from "../../../src/core/export/manifest.ts";
import { Problem } from "../../../src/core/problem.ts";
import { ask, NewExport } from "../../../src/flow/export/ask.ts";
import { make } from "../../../src/flow/export/make.ts";
import { makeLoop } from "../../../src/flow/export/make-loop.ts";
import {
  exportFile,
  manifestJson,
  manifestNote,
  parseManifest,
  type ShownExport,
  showExport,
} from "../../../src/flow/export/read.ts";
import { folderExports } from "../../../src/store/export-files-folder.ts";
import { readExport } from "../../../src/store/exports.ts";
import { compiled } from "../../compile.ts";
import { testOnSmallDisk } from "../../small-disk.ts";
import { entriesOf } from "../door.ts";
import { type Desk, leaves, openDesk } from "./making.ts";

const PROCESS = compiled(new URL("./making-process.ts", import.meta.url));
/** Builds before anything is exported: T51's number of rows, with what a log begins with. */
const BUILDS = 1_002;

let desk: Desk;
beforeAll(async () => {
  desk = await openDesk();
  await desk.grow(BUILDS);
});
afterAll(() => desk.close());
beforeEach(async () => {
  await desk.sql`delete from exports`;
});

async function asked(more: Partial<NewExport> = {}): Promise<ShownExport> {
  const input = NewExport.parse({ name: "entries", format: "csv", ...more });
  return await ask(desk.making, { log: desk.log, by: "p_finance" }, input);
}

async function made(of: { log: string; id: string }, more: Partial<Desk["making"]> = {}) {
  const row = await readExport(desk.sql, of);
  if (row === undefined) throw new Error("nothing was asked for");
  await make({ ...desk.making, ...more }, row);
  return await showExport(desk.making, of);
}

async function contentOf(of: ShownExport): Promise<string> {
  const { bytes, read } = await exportFile(desk.making, of);
  const chunks: Uint8Array[] = [];
  for await (const chunk of read({ from: 0, to: bytes })) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** As the file has to be, from the entries themselves. */
async function expected(asOf: string): Promise<string> {
  const rows = await desk.sql<{ index: bigint; leaf: Uint8Array }[]>`
    select index, leaf from entries where log = ${desk.log} and index < ${asOf} order by index`;
  const lines = rows.map(({ index, leaf }) => `${index},${Buffer.from(leaf).toString("hex")}`);
  return ["index,leaf", ...lines].map((line) => `${line}\r\n`).join("");
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("base64");

test("what is asked for waits, is made, and says in its manifest all that is in it", async () => {
  const { id, as_of } = await asked();
  const pending = await showExport(desk.making, { log: desk.log, id });
  expect(pending).toMatchObject({ state: "pending", bytes: "0", file: `entries-${as_of}.csv` });
  await expect(manifestJson(desk.making, pending)).rejects.toMatchObject({
    code: "export-pending",
  });
  const done = await made(pending);
  const content = await contentOf(done);
  expect(content).toBe(await expected(as_of));
  const json = await manifestJson(desk.making, done);
  const rows = BigInt(as_of);
  expect(parseManifest(json)).toMatchObject({
    ...{ as_of, log: desk.log, name: "entries", format: "csv", parameters: {} },
    ...{ bytes: String(content.length), rows: as_of, sha256: sha256(content) },
    ...{ columns: ["index", "leaf"], totals: { index: String((rows * (rows - 1n)) / 2n) } },
    ...{ range: { from: "0", to: as_of }, checkpoint: { size: as_of }, generator: "test 1" },
    instance: { platform: "dotcom", unique_id: "exported" },
  });
  const note = await manifestNote(desk.making, done);
  const text = exportText(`door.test/${desk.log}`, "entries", json);
  expect(note.startsWith(`${text}\n— door.test/${desk.log} `)).toBe(true);
});

test("T51: rows that are inserted while it is made, and after, change no byte of it", async () => {
  const { id, as_of } = await asked();
  const of = { log: desk.log, id };
  const growing = (told: number): void => {
    if (told === 1) grown = desk.grow(40);
  };
  let grown: Promise<void> | undefined;
  const done = await made(of, {
    sources: {
      entries: (origin) => {
        const sheet = leaves(origin);
        return { ...sheet, pages: watched(sheet.pages, growing) };
      },
    },
  });
  await grown;
  expect(await contentOf(done)).toBe(await expected(as_of));
  const later = await made(await asked({ as_of }));
  expect(await contentOf(later)).toBe(await contentOf(done));
  const entries = await entriesOf(desk.sql, desk.log);
  expect(entries.length).toBeGreaterThan(Number(as_of));
});

async function* watched<T>(items: AsyncIterable<T>, told: (count: number) => void) {
  let count = 0;
  for await (const item of items) {
    yield item;
    count += 1;
    told(count);
  }
}

test("killed with -9 in the middle, it is made by another process to the same bytes", async () => {
  const { id, as_of } = await asked();
  const of = { log: desk.log, id };
  const child = spawn(
    process.execPath,
    [PROCESS, desk.house.database.urls.writer, desk.house.archive, desk.folder, "stalled"],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  await vi.waitUntil(() => said.includes("2\n"), { timeout: 20_000 });
  expect((await made(of)).state, "whoever is making it is left alone").toBe("pending");
  await desk.grow(40);
  child.kill("SIGKILL");
  await once(child, "exit");
  const done = await vi.waitUntil(
    async () => {
      const now = await made(of);
      return now.state === "done" && now;
    },
    { timeout: 20_000 },
  );
  expect(await contentOf(done)).toBe(await expected(as_of));
  const left = await readdir(join(desk.folder, ".staging"));
  expect(left.length, "what it had written so far has no name, and is swept later").toBe(1);
});

test("a process that is asked to stop leaves what it is making to the next one", async () => {
  const { id } = await asked();
  const of = { log: desk.log, id };
  const abort = new AbortController();
  const failures: unknown[] = [];
  let begun = false;
  const stop = (): void => {
    begun = true;
    abort.abort();
  };
  await makeLoop({
    ...desk.making,
    sources: {
      entries: (origin) => ({ ...leaves(origin), pages: watched(leaves(origin).pages, stop) }),
    },
    ...{ signal: abort.signal, onRound: () => undefined },
    onFailure: (error) => failures.push(error),
  });
  expect([begun, failures]).toEqual([true, []]);
  expect((await made(of)).state).toBe("done");
});

test("a loop makes all that waits, the oldest first, and one that fails keeps no other waiting", async () => {
  const [first, second, third] = [await asked(), await asked({ format: "ndjson" }), await asked()];
  // Of which nothing here makes any.
  await desk.sql`update exports set name = 'account_map' where id = ${first?.id ?? ""}`;
  const abort = new AbortController();
  const failures: [unknown, string | undefined][] = [];
  const loop = makeLoop({
    ...{ ...desk.making, signal: abort.signal, intervalMs: 1 },
    onRound: () => abort.abort(),
    onFailure: (error, log) => failures.push([error, log]),
  });
  await loop;
  const states = await desk.sql`select state, error from exports order by number`;
  expect(states).toEqual([
    { state: "failed", error: "internal" },
    { state: "done", error: null },
    { state: "done", error: null },
  ]);
  expect(failures).toEqual([[expect.any(Error), desk.log]]);
  const refused = manifestJson(desk.making, { log: desk.log, id: first?.id ?? "" });
  await expect(refused).rejects.toMatchObject({
    code: "export-failed",
    extension: { error: "internal" },
  });
  expect([second, third].map((each) => each?.file.split(".")[1])).toEqual(["ndjson", "csv"]);
});

test("what a source refuses is said by its code; what may pass waits", async () => {
  const refusing = await asked();
  const sources = {
    entries: () => {
      throw new Problem("month-not-ready");
    },
  };
  await expect(made(refusing, { sources })).rejects.toMatchObject({ code: "month-not-ready" });
  const failed = await showExport(desk.making, refusing);
  expect(failed).toMatchObject({ state: "failed", error: "month-not-ready" });

  const waiting = await asked();
  const nowhere = folderExports(join(desk.folder, "no", "such", "folder"));
  await expect(made(waiting, { files: nowhere })).rejects.toMatchObject({
    code: "exports-unavailable",
  });
  expect((await showExport(desk.making, waiting)).state).toBe("pending");
  expect((await made(waiting)).state).toBe("done");
});

testOnSmallDisk(
  "a full disk fails it with its code, and leaves nothing that looks whole",
  async () => {
    const disk = join(desk.folder, "disk");
    await mkdir(disk, { recursive: true });
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=512k", "minutebook-test", disk]);
    onTestFinished(() => void execFileSync("umount", ["--lazy", disk]));
    const files = folderExports(join(disk, "exports"));
    const full = await asked();
    await writeFile(join(disk, "ballast"), Buffer.alloc(480 * 1024));
    await expect(made(full, { files })).rejects.toMatchObject({ code: "no-room" });
    const failed = await showExport(desk.making, full);
    expect(failed).toMatchObject({ state: "failed", error: "no-room" });
    expect(await files.size(`${desk.log}/${full.id}.csv`)).toBeUndefined();
    await rm(join(disk, "ballast"));
    const again = await made(await asked(), { files });
    expect(again.state).toBe("done");
  },
);

test("50,000 rows, of a kilobyte each, are made in a heap that could not hold them", async () => {
  const { id } = await asked();
  const child = spawn(
    process.execPath,
    [
      ...["--max-old-space-size=40", PROCESS, desk.house.database.urls.writer],
      ...[desk.house.archive, desk.folder, "long", "50000"],
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  const [code] = await once(child, "close");
  expect(code).toBe(0);
  const done = await showExport(desk.making, { log: desk.log, id });
  expect(done.state).toBe("done");
  expect(Number(done.bytes)).toBeGreaterThan(50_000_000);
  expect(Number(said), "MiB").toBeLessThan(256);
});

test("what does not fit is said at once, with the members that do not", async () => {
  const sealed = (await asked()).as_of;
  const beyond = { as_of: String(BigInt(sealed) + 1n) };
  await expect(asked(beyond)).rejects.toMatchObject({ code: "not-sealed" });
  const cases: [Partial<NewExport>, string[]][] = [
    [{ name: "portal" }, ["month"]],
    [{ name: "portal", month: "2027-01-01" }, ["month"]],
    [{ name: "entries", month: "2026-11-01" }, ["month"]],
    [{ name: "account_map", from: "1" }, ["from"]],
    [{ name: "entries", from: String(BigInt(sealed) + 1n) }, ["from"]],
    [{ name: "monthly_project", credit_minutes: "100" }, ["credit_minutes"]],
  ];
  for (const [input, members] of cases) {
    await expect(asked(input)).rejects.toMatchObject({
      code: "invalid-request",
      extension: { members },
    });
  }
  const none = ask(
    desk.making,
    { log: "f".repeat(32), by: "" },
    { name: "entries", format: "csv" },
  );
  await expect(none).rejects.toMatchObject({ code: "not-sealed" });
});

test("a log has at most a hundred that wait, however many are asked for at once", async () => {
  const all = await Promise.allSettled(Array.from({ length: 120 }, () => asked()));
  const refused = all.filter((each) => each.status === "rejected").map(({ reason }) => reason.code);
  expect(refused).toEqual(Array(20).fill("busy"));
});

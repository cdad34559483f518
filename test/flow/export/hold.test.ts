/** An export is one process's while it works on it, for as long as that takes, and nobody's after. */
import { mkdir, mkdtemp, readdir, rename, rm, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ask } from "../../../src/flow/export/ask.ts";
import { type Delivering, deliverDue } from "../../../src/flow/export/deliver.ts";
import { expireDue } from "../../../src/flow/export/expire.ts";
import { make } from "../../../src/flow/export/make.ts";
import { exportFile } from "../../../src/flow/export/read.ts";
import type { Source } from "../../../src/flow/export/source.ts";
import type { ByteRange } from "../../../src/store/export-files.ts";
import { openExports } from "../../../src/store/export-location.ts";
import { type ExportRow, readExport } from "../../../src/store/exports.ts";
import { eraseName, putNames } from "../../../src/store/names.ts";
import { type Desk, leaves, openDesk } from "./making.ts";

let desk: Desk;
beforeAll(async () => {
  desk = await openDesk();
  await desk.grow(20);
});
afterAll(() => desk.close());
beforeEach(async () => {
  await desk.sql`delete from exports`;
});

/** As a process has listed it: what becomes of it later is not in it. */
async function listed(more: { names?: true } = {}): Promise<ExportRow> {
  const asked = await ask(
    desk.making,
    { log: desk.log, by: "p_finance" },
    { name: "entries", format: "csv", ...more },
  );
  return await now(asked);
}

async function now(of: { log: string; id: string }): Promise<ExportRow> {
  const row = await readExport(desk.sql, of);
  if (row === undefined) throw new Error("the export is not there");
  return row;
}

/** `leaves`, and how often somebody made something of them. */
function counted(source: Source = leaves) {
  const count = { begun: 0 };
  const entries: Source = (origin) => {
    count.begun += 1;
    return source(origin);
  };
  return { count, sources: { entries } };
}

async function endHolder(): Promise<void> {
  await desk.house.database.superuser`
    select pg_terminate_backend(pid, 10000)
    from pg_locks
    where locktype = 'advisory' and granted and database = (
      select oid from pg_database where datname = current_database()
    )`;
}

const filesOf = async (id: string): Promise<string[]> => {
  const names = await readdir(join(desk.folder, desk.log));
  return names.filter((name) => name.startsWith(id));
};

test("of many processes that have listed one export a single one makes it, whenever they come to it", async () => {
  const { count, sources } = counted();
  for (let round = 1; round <= 5; round += 1) {
    const row = await listed();
    await Promise.all(Array.from({ length: 8 }, () => make({ ...desk.making, sources }, row)));
    await make({ ...desk.making, sources }, row);
    expect([(await now(row)).state, count.begun]).toEqual(["done", round]);
  }
});

test("what failed is tried by nobody who had listed it before", async () => {
  const { count, sources } = counted(() => {
    throw new Error("broken");
  });
  const row = await listed();
  const making = { ...desk.making, sources };
  await expect(make(making, row)).rejects.toThrow("broken");
  await make(making, row);
  expect([(await now(row)).error, count.begun]).toEqual(["internal", 1]);
});

test("what was removed since it was listed is not made again: its file would lie there for ever", async () => {
  const row = await listed();
  await make(desk.making, row);
  const onFailure = (error: unknown): void => expect.unreachable(String(error));
  await expireDue({ ...desk.making, keptMs: -1, onFailure });
  expect(await filesOf(row.id)).toEqual([]);
  await make(desk.making, row);
  expect(await filesOf(row.id)).toEqual([]);
});

test("a process that starts while the disk is not mounted writes nothing where it is to be", async () => {
  await make(desk.making, await listed());
  const disk = `${desk.folder}-disk`;
  await rename(desk.folder, disk);
  await mkdir(desk.folder);
  const row = await listed();
  const files = await openExports(desk.folder);
  const making = make({ ...desk.making, files }, row);
  await expect(making).rejects.toMatchObject({ code: "exports-unavailable" });
  expect([await readdir(desk.folder), (await now(row)).state]).toEqual([[], "pending"]);
  await rmdir(desk.folder);
  await rename(disk, desk.folder);
  await make({ ...desk.making, files }, row);
  expect((await now(row)).state).toBe("done");
});

test("whoever has lost the lock gives no file its name, and leaves the row to whoever makes it again", async () => {
  const row = await listed();
  const { count, sources } = counted((origin) => {
    const sheet = leaves(origin);
    return { ...sheet, pages: cutBehind(sheet.pages, endHolder) };
  });
  await expect(make({ ...desk.making, sources }, row)).rejects.toThrow();
  expect([await filesOf(row.id).catch(() => []), count.begun]).toEqual([[], 1]);
  expect((await now(row)).state).toBe("pending");
  await make(desk.making, row);
  expect((await now(row)).state).toBe("done");
});

async function* cutBehind<T>(items: AsyncIterable<T>, cut: () => Promise<void>) {
  yield* items;
  await cut();
}

/** As files are kept, but for the reading of what is no note. */
function fileRead(read: Delivering["files"]["read"]): Delivering["files"] {
  const { files } = desk.making;
  const isNote = (path: string): boolean => path.endsWith(".note");
  return { ...files, read: (path, range) => (isNote(path) ? files : { read }).read(path, range) };
}

test("a copy that takes longer than a process may be stopped is delivered, and once", async () => {
  const to = await mkdtemp(join(tmpdir(), "minutebook-slow-"));
  const row = await listed();
  await desk.sql`update exports set deliver_to = ${to} where id = ${row.id}`;
  await make(desk.making, row);
  const idleMs = 400;
  const taken: number[] = [];
  const { files } = desk.making;
  const slow = fileRead(slowly);
  async function* slowly(path: string, { from, to: end }: ByteRange) {
    const begun = performance.now();
    const middle = Math.floor(end / 2);
    yield* files.read(path, { from, to: middle });
    // Longer than the limit, with nothing read or written: a bucket that takes one part slowly.
    await delay(3 * idleMs);
    yield* files.read(path, { from: middle, to: end });
    taken.push(performance.now() - begun);
  }
  const failures: unknown[] = [];
  const delivering: Delivering = {
    ...{ ...desk.making, files: slow, open: openExports, idleMs },
    onFailure: (error) => failures.push(error),
  };
  await Promise.all([1, 2].map(() => deliverDue(delivering)));
  await deliverDue(delivering);
  expect([failures, taken.length]).toEqual([[], 1]);
  expect(taken[0]).toBeGreaterThan(idleMs);
  expect(await readdir(join(to, desk.log))).toHaveLength(3);
  expect((await now(row)).delivered_at).not.toBeNull();
  await rm(to, { recursive: true });
});

test("what may have a name that was erased is given to nobody, from before its last byte is copied", async () => {
  const to = await mkdtemp(join(tmpdir(), "minutebook-erased-"));
  const row = await listed({ names: true });
  await desk.sql`update exports set deliver_to = ${to} where id = ${row.id}`;
  await make(desk.making, row);
  const name = { kind: "namespace", id: "7" } as const;
  await putNames(desk.sql, desk.log, [{ ...name, name: "Acme" }]);
  const { files } = desk.making;
  const erasing = fileRead(eraseBehind);
  async function* eraseBehind(path: string, range: ByteRange) {
    yield* files.read(path, range);
    await eraseName(desk.sql, { ...name, log: desk.log }, new Date(desk.door.now));
  }
  const failures: unknown[] = [];
  const onFailure = (error: unknown): void => void failures.push(error);
  const delivering: Delivering = { ...desk.making, open: openExports, onFailure };
  await deliverDue({ ...delivering, files: erasing });
  expect(failures).toEqual([new Error("exports: a name was erased meanwhile")]);
  await deliverDue(delivering);
  expect([failures.length, await readdir(to)]).toEqual([1, [".staging"]]);
  await expect(exportFile(desk.making, row)).rejects.toMatchObject({ code: "not-found" });
  await expireDue({ ...delivering, keptMs: 9_000_000 });
  expect(await readExport(desk.sql, row)).toBeUndefined();
  await rm(to, { recursive: true });
});

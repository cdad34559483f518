/** What an export says of itself is the word of whoever made it; and how long anybody waits for that. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { canonical } from "../../../src/core/json.ts";
import { Problem } from "../../../src/core/problem.ts";
import { encodeBase64 } from "../../../src/core/text.ts";
import { ask } from "../../../src/flow/export/ask.ts";
import { make } from "../../../src/flow/export/make.ts";
import {
  exportFile,
  manifestJson,
  manifestNote,
  parseManifest,
  type ShownExport,
  showExport,
} from "../../../src/flow/export/read.ts";
import { ArchiveError } from "../../../src/store/archive.ts";
import { ExportFilesError } from "../../../src/store/export-files.ts";
import { readExport } from "../../../src/store/exports.ts";
import { type Desk, openDesk } from "./making.ts";

const DAY_MS = 86_400_000;

let desk: Desk;
beforeAll(async () => {
  desk = await openDesk();
  await desk.grow(20);
});
afterAll(() => desk.close());
beforeEach(async () => {
  await desk.sql`delete from exports`;
});

async function asked(): Promise<ShownExport> {
  const file = { name: "entries", format: "csv" } as const;
  return await ask(desk.making, { log: desk.log, by: "p_finance" }, file);
}

async function made(of: { log: string; id: string }, more: Partial<Desk["making"]> = {}) {
  const row = await readExport(desk.sql, of);
  if (row === undefined) throw new Error("nothing was asked for");
  await make({ ...desk.making, ...more }, row);
  return await showExport(desk.making, of);
}

const GIVEN = [manifestNote, manifestJson, exportFile] as const;

test("whoever writes the row of an export is given nothing of a manifest that was not made", async () => {
  const done = await made(await asked());
  const honest = parseManifest(await manifestJson(desk.making, done));
  const forgeries = [
    { manifest: canonical({ ...honest, totals: { index: "1" } }) },
    { manifest: "{}" },
    { as_of: 3n },
    // Of a version that kept no note, or with a note that is no other export's.
    { id: "e".repeat(32) },
  ];
  for (const [at, forged] of forgeries.entries()) {
    const given = GIVEN[at % GIVEN.length] ?? manifestNote;
    const of = { log: desk.log, id: "id" in forged ? forged.id : done.id };
    await desk.sql`update exports set ${desk.sql(forged)} where id = ${done.id}`;
    const pending = { code: "export-pending" };
    await expect(given(desk.making, of)).rejects.toMatchObject(pending);
    expect((await showExport(desk.making, of)).state).toBe("pending");
    for (const give of GIVEN) await expect(give(desk.making, of)).rejects.toMatchObject(pending);
    await desk.sql`update exports set as_of = ${done.as_of} where id = ${of.id}`;
    await made(of);
    const again = parseManifest(await manifestJson(desk.making, of));
    expect({ ...again, created_at: "" }).toEqual({ ...honest, created_at: "" });
    expect(await manifestNote(desk.making, of)).toContain(`${desk.log}/export\nentries\n`);
  }
});

test("the checkpoint of a manifest is the archive's, whatever stands in the row", async () => {
  const { id, as_of } = await asked();
  await desk.sql`update exports set checkpoint_root = ${new Uint8Array(32)} where id = ${id}`;
  const [genuine] = await desk.sql<{ root: Uint8Array }[]>`
    select root from checkpoints where log = ${desk.log} and size = ${as_of}`;
  const done = await made({ log: desk.log, id });
  const { checkpoint } = parseManifest(await manifestJson(desk.making, done));
  expect(checkpoint).toEqual({
    root: encodeBase64(genuine?.root ?? new Uint8Array()),
    size: as_of,
  });

  const beyond = await asked();
  await desk.sql`update exports set as_of = as_of + 1 where id = ${beyond.id}`;
  await expect(made(beyond)).rejects.toThrow("no archived checkpoint covers it");
});

test("whoever asked is told after a day why it cannot be made; what a schedule asks for is tried for ever", async () => {
  const day = { asked_at: new Date(desk.door.now - DAY_MS) };
  const reset = Object.assign(new Error("reset"), { code: "ECONNRESET" });
  const cases = [
    [new ExportFilesError("exports-unavailable", "away"), "exports-unavailable"],
    [new ArchiveError("archive-unavailable", "away"), "archive-unavailable"],
    [new Problem("signer-unavailable"), "signer-unavailable"],
    [reset, "busy"],
  ] as const;
  for (const [error, code] of cases) {
    const sources = {
      entries: () => {
        throw error;
      },
    };
    const [fresh, old, due] = [await asked(), await asked(), await asked()];
    await desk.sql`update exports set ${desk.sql(day)} where id in (${old.id}, ${due.id})`;
    await desk.sql`update exports set origin = ${`day/${code}`} where id = ${due.id}`;
    for (const each of [fresh, old, due]) await expect(made(each, { sources })).rejects.toBe(error);
    const states = [fresh, old, due].map(async (each) => await showExport(desk.making, each));
    expect(await Promise.all(states)).toMatchObject([
      { state: "pending" },
      { state: "failed", error: code },
      { state: "pending" },
    ]);
  }
});

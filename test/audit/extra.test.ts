/** What stands in an archive beside the files that the largest checkpoint needs. */
import { expect, test } from "vitest";
import { type Kept, openCheckpoint } from "../../audit/archive/checkpoints.ts";
import { verifyNow } from "../../audit/native.ts";
import { exitOf } from "../../audit/print.ts";
import { encodeBundle } from "../../src/core/bundle.ts";
import { formatCheckpoint } from "../../src/core/checkpoint.ts";
import { signNote } from "../../src/core/note.ts";
import { encodeUtf8 } from "../../src/core/text.ts";
import { auditFiles, checkpointOf, type Files, filesOf, said, signer, vkey } from "./archive.ts";
import { longLog, smallLog } from "./honest.ts";

const log = smallLog();
const SIZE = log.size;
const long = longLog(300);
const LONG = filesOf(long, [100, 200, 300]);

async function codes(files: Files): Promise<string[]> {
  return said(await auditFiles(files)).codes;
}

function with_(files: Files, changes: Record<string, Uint8Array>): Files {
  return new Map([...files, ...Object.entries(changes)]);
}

test("a wider bundle than the checkpoint covers begins with the same entries", async () => {
  const files = filesOf(log, [5]);
  const name = `tile/entries/000.p/${SIZE}`;
  const live = with_(files, { [name]: encodeBundle(log.entries) });
  expect(await codes(live)).toEqual([]);
  const fork = log.entries.with(4, encodeUtf8("another truth"));
  expect(await codes(with_(files, { [name]: encodeBundle(fork) }))).toEqual(["bundle-partial"]);
  const garbage = { "tile/entries/000": encodeUtf8("garbage") };
  expect(await codes(with_(files, garbage))).toEqual(["bundle-width"]);
});

test.each(["tile/0/000", "tile/0/001.p/45", "tile/0/001", "tile/1/000.p/9", "tile/1/000"])(
  "a wider tile than the checkpoint covers begins with the same hashes: %s",
  async (path) => {
    const [, partial] = path.split(".p/");
    const width = Number(partial ?? 256);
    expect(await codes(with_(LONG, { [path]: new Uint8Array(3) }))).toEqual(["tile-width"]);
    const forked = await codes(with_(LONG, { [path]: new Uint8Array(width * 32) }));
    expect(forked.filter((code) => code.startsWith("tile")).length).toBe(1);
  },
);

test("an archive that retention went over is as good as it was", async () => {
  const gone = /^checkpoint\/100$|^tile\/(?:entries|0)\/000\.p\//;
  const files = new Map(Array.from(LONG).filter(([path]) => !gone.test(path)));
  expect(files.size).toBeLessThan(LONG.size - 4);
  const result = await auditFiles(files);
  expect([said(result).codes, exitOf(result)]).toEqual([[], exitOf(await auditFiles(LONG))]);
});

test("what sealers claimed is no stranger", async () => {
  const claims = { "claim/0": encodeUtf8("x"), "claim/300": encodeUtf8("x") };
  const result = await auditFiles(with_(filesOf(log), claims));
  expect(result.strangers.count).toBe(0);
});

test("files under names that no log writes are counted, and told", async () => {
  const odd = ["tile/0/000.bak", "checkpoint/latest", "checkpoint/007", "notes", "tile/0/000.p/0"];
  const strangers = Object.fromEntries(odd.map((path) => [path, encodeUtf8("x")]));
  const result = await auditFiles(with_(filesOf(log), strangers));
  expect(result.strangers).toEqual({ count: 5, listed: odd });
  expect(exitOf(result)).toBe(0);
});

test("a checkpoint removed from the end leaves entries that none covers, and no pass", async () => {
  const files = new Map(LONG);
  files.delete("checkpoint/300");
  const result = await auditFiles(files);
  expect([result.size, result.uncovered, exitOf(result)]).toEqual([200n, 100n, 2]);
  expect(result.open.first).toMatchObject({ code: "uncovered", index: 200n });
  // The tiles alone tell it too.
  for (const path of LONG.keys()) {
    if (/entries\/(?:001|000$)/.test(path)) files.delete(path);
  }
  expect(exitOf(await auditFiles(files))).toBe(2);
  // While it is written, a log has bundles before their checkpoint.
  expect(exitOf(await auditFiles(files, { live: true }))).toBe(0);
});

test("a log cut back to an earlier checkpoint contradicts one that somebody kept", async () => {
  const cut = filesOf(long, [100, 200]);
  expect(exitOf(await auditFiles(cut))).toBe(0);
  const result = await auditFiles(cut, { kept: [keptOf(300)] });
  expect(result.findings.listed).toMatchObject([{ code: "checkpoint-kept", path: "kept.note" }]);
  const emptied = await auditFiles(new Map(), { kept: [keptOf(300)] });
  expect(said(emptied).codes).toEqual(["checkpoint-kept"]);
});

test.each([0, 1, 100, 150, 256, 257, 300])(
  "a kept checkpoint is in the tree, whether or not the archive still has it: %i",
  async (size) => {
    const kept = keptOf(size);
    const held = await auditFiles(LONG, { kept: [kept] });
    expect([exitOf(held), held.checkpoints]).toEqual([0, 3]);
    const root = kept.checkpoint.root.map((byte) => byte ^ 1);
    const other = { ...kept, checkpoint: { ...kept.checkpoint, root } };
    const { findings } = await auditFiles(LONG, { kept: [other, kept] });
    expect(findings.listed).toMatchObject([{ code: "checkpoint-kept", path: "kept.note" }]);
  },
);

test.each([2_000_000n, 9_000_000_000_000_000_000n])(
  "a size that no log has, but the log's key has signed, ends where the entries do: %i",
  async (size) => {
    const note = { origin: `test/${long.id}`, size, root: new Uint8Array(32) };
    const text = signNote(formatCheckpoint(note), [signer(long.id)]);
    const { findings } = await auditFiles(
      with_(LONG, { [`checkpoint/${size}`]: encodeUtf8(text) }),
    );
    expect(findings.listed).toMatchObject([{ code: "bundle-missing", index: 256n }]);
    expect(findings.first?.detail).toContain(`256 to ${size - 1n}`);
  },
);

test("a bundle that is gone with its tile is missed once, and what comes after is judged", async () => {
  const log = longLog(800);
  const files = filesOf(log);
  for (const index of ["001", "002"]) {
    files.delete(`tile/entries/${index}`);
    files.delete(`tile/0/${index}`);
  }
  const gap = await auditFiles(files);
  expect(gap.findings.listed).toMatchObject([{ code: "bundle-missing", index: 256n }]);
  expect(gap.findings.first?.detail).toContain("256 to 767");
  const last = log.entries.slice(768);
  files.set("tile/entries/003.p/32", encodeBundle(last.with(5, encodeUtf8("x"))));
  expect(await codes(files)).toEqual(["bundle-missing", "entry-altered", "entry-malformed"]);
});

/** As somebody would have it who asked the honest log. */
function keptOf(size: number): Kept {
  const file = checkpointOf(long, size);
  const checkpoint = openCheckpoint(file, { vkeys: [vkey()], verify: verifyNow });
  if (typeof checkpoint === "string") throw new Error(checkpoint);
  return { name: "kept.note", checkpoint };
}

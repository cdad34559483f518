import { expect, test } from "vitest";
import { exitOf } from "../../audit/print.ts";
import { encodeBundle } from "../../src/core/bundle.ts";
import { encodeUtf8 } from "../../src/core/text.ts";
import { bundlePath, tilePath } from "../../src/core/tile.ts";
import { testKey } from "../signing.ts";
import { auditFiles, checkpointOf, type Files, filesOf, said, signer } from "./archive.ts";
import { longLog, smallLog } from "./honest.ts";
import { LOG_ID, OTHER_LOG_ID } from "./log.ts";

const log = smallLog();
const SIZE = log.size;
const BUNDLE = bundlePath(0n, SIZE);
const TILE = tilePath(0, 0n, SIZE);
const HONEST: ReadonlyMap<string, Uint8Array> = filesOf(log);

function changed(path: string, bytes: Uint8Array): Files {
  return new Map(HONEST).set(path, bytes);
}

/** The honest archive, its only bundle made of other entries. */
function rebundled(change: (entries: Uint8Array[]) => Uint8Array[]): Files {
  return changed(BUNDLE, encodeBundle(change([...log.entries])));
}

async function found(files: Files): Promise<{ codes: string[]; first: bigint | undefined }> {
  const result = await auditFiles(files);
  expect(exitOf(result)).toBe(1);
  return said(result);
}

test("one bit changed in any byte of a bundle is named with the entry that it is in", async () => {
  const bundle = HONEST.get(BUNDLE) ?? new Uint8Array();
  let entry = 0;
  let end = 2 + (log.entries[0]?.length ?? 0);
  for (let at = 0; at < bundle.length; at += 1) {
    if (at === end) end += 2 + (log.entries[++entry]?.length ?? 0);
    const bytes = bundle.slice();
    bytes[at] = (bytes[at] ?? 0) ^ (1 << (at % 8));
    const { findings } = await auditFiles(changed(BUNDLE, bytes));
    expect(findings.first?.index, `byte ${at}`).toBe(BigInt(entry));
  }
});

test("one bit changed in any byte of a tile is named with the tile", async () => {
  const tile = HONEST.get(TILE) ?? new Uint8Array();
  for (let at = 0; at < tile.length; at += 1) {
    const bytes = tile.slice();
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    const { findings } = await auditFiles(changed(TILE, bytes));
    expect([...findings.byCode]).toEqual([["tile-hash", 1]]);
    expect(findings.first?.index).toBe(BigInt(Math.floor(at / 32)));
  }
});

test("an entry removed at any place is missing there", async () => {
  for (let i = 0; i < SIZE; i += 1) {
    const { codes, first } = await found(rebundled((entries) => entries.toSpliced(i, 1)));
    expect(codes).toEqual(expect.arrayContaining(["bundle-width", "entry-missing"]));
    expect(codes).not.toContain("entry-altered");
    expect(first).toBe(BigInt(i));
  }
});

test("an entry inserted at any place is one too many", async () => {
  for (let i = 0; i <= SIZE; i += 1) {
    const files = rebundled((entries) => entries.toSpliced(i, 0, entries[3] ?? new Uint8Array()));
    const { codes, first } = await found(files);
    expect(codes).toContain("entry-extra");
    expect(codes).toContain("bundle-width");
    expect(codes).not.toContain("entry-altered");
    expect(first).toBeLessThanOrEqual(BigInt(Math.max(i, 4)));
  }
});

test("two entries swapped are out of order, and nothing else is wrong", async () => {
  for (let i = 0; i + 1 < SIZE; i += 1) {
    const files = rebundled((entries) => {
      const [a, b] = entries.slice(i, i + 2);
      return a && b ? entries.toSpliced(i, 2, b, a) : entries;
    });
    expect(await found(files)).toEqual({ codes: ["entry-swapped"], first: BigInt(i) });
  }
});

test("a bundle cut at any byte is named with the entry at the cut", async () => {
  const bundle = HONEST.get(BUNDLE) ?? new Uint8Array();
  let start = 0;
  for (const [i, entry] of log.entries.entries()) {
    const end = start + 2 + entry.length;
    // Around an entry's length and before its end every byte; between them no two differ but in number.
    const within = (at: number): boolean => at > start + 4 && at < end - 4;
    for (let at = start; at < end; at += within(at) ? 7 : 1) {
      const { codes, first } = await found(changed(BUNDLE, bundle.slice(0, at)));
      expect(first, `byte ${at}`).toBe(BigInt(i));
      expect(codes.includes("bundle-cut"), `byte ${at}`).toBe(at !== start);
      expect(codes).toEqual(expect.arrayContaining(["bundle-width", "entry-missing"]));
    }
    start = end;
  }
});

test("an entry of another log in the same place is foreign", async () => {
  const other = smallLog(OTHER_LOG_ID);
  for (let i = 0; i < SIZE; i += 1) {
    const files = rebundled((entries) => entries.with(i, other.entries[i] ?? new Uint8Array()));
    const { codes, first } = await found(files);
    expect(codes).toContain("entry-foreign");
    expect(codes).toContain("entry-altered");
    expect(first).toBe(BigInt(i));
  }
});

test("a bundle that is gone is missing; so is a tile, of any level", async () => {
  const gone = new Map(HONEST);
  gone.delete(BUNDLE);
  expect(await found(gone)).toMatchObject({ codes: ["bundle-missing"], first: 0n });
  const long = longLog(300);
  for (const path of filesOf(long).keys()) {
    if (!path.startsWith("tile/") || path.startsWith("tile/entries")) continue;
    const files = filesOf(long);
    files.delete(path);
    const { findings } = await auditFiles(files);
    expect(findings.listed.filter(({ code }) => code === "tile-missing")).toHaveLength(1);
    expect(findings.listed.some((finding) => finding.path === path)).toBe(true);
  }
});

test("a bundle or a tile of another width than its name says is named", async () => {
  expect(await found(rebundled((entries) => entries.slice(0, -1)))).toMatchObject({
    codes: ["bundle-width", "entry-missing"],
  });
  const tile = HONEST.get(TILE) ?? new Uint8Array();
  for (const bytes of [tile.slice(0, -32), tile.slice(0, -1), new Uint8Array()]) {
    expect((await found(changed(TILE, bytes))).codes).toEqual(["tile-width"]);
  }
  const longer = new Uint8Array([...tile, ...tile.slice(0, 32)]);
  expect((await found(changed(TILE, longer))).codes).toEqual(["tile-width"]);
});

test("a hash of a higher tile that the entries do not give is named", async () => {
  const long = longLog(300);
  const files = filesOf(long);
  const path = tilePath(1, 0n, 1);
  files.set(path, new Uint8Array(32));
  const { findings } = await auditFiles(files);
  expect(findings.listed.filter(({ code }) => code.startsWith("tile"))).toMatchObject([
    { code: "tile-hash", path },
  ]);
});

test("what a smaller checkpoint left must be how bundle and tile begin", async () => {
  const files = filesOf(log, [5, SIZE]);
  expect((await auditFiles(files)).findings.count).toBe(0);
  const bundle = bundlePath(0n, 5);
  const fork = encodeBundle(log.entries.slice(0, 5).with(4, encodeUtf8("another truth")));
  expect((await found(new Map(files).set(bundle, fork))).codes).toEqual(["bundle-partial"]);
  const short = encodeBundle(log.entries.slice(0, 4));
  expect((await found(new Map(files).set(bundle, short))).codes).toEqual(["bundle-width"]);
  const tile = tilePath(0, 0n, 5);
  expect((await found(new Map(files).set(tile, new Uint8Array(160)))).codes).toEqual([
    "tile-partial",
  ]);
});

test("a bundle or tile that follows nothing is one too many", async () => {
  const extra = changed(bundlePath(7n), encodeBundle([encodeUtf8("x")]));
  expect((await found(extra)).codes).toEqual(["bundle-extra"]);
  const tile = changed(tilePath(3, 0n, 1), new Uint8Array(32));
  expect((await found(tile)).codes).toEqual(["tile-extra"]);
});

test("a checkpoint whose root is not the entries' own contradicts them", async () => {
  const files = filesOf(log, [5, SIZE]);
  files.set("checkpoint/5", checkpointOf(log, 5, new Uint8Array(32)));
  expect((await found(files)).codes).toEqual(["checkpoint-root"]);
  files.set("checkpoint/5", checkpointOf(log, 5));
  files.set(`checkpoint/${SIZE}`, checkpointOf(log, SIZE, new Uint8Array(32)));
  expect((await found(files)).codes).toEqual(["checkpoint-root"]);
});

test("an older checkpoint under a larger one's name is told from it", async () => {
  const files = filesOf(log, [5, SIZE]);
  files.set(`checkpoint/${SIZE}`, checkpointOf(log, 5));
  const result = await auditFiles(files);
  expect(said(result).codes).toEqual(["checkpoint-size"]);
  expect(result.size).toBe(5n);
});

test("signatures beside the trusted one change nothing, but a second one by it does", async () => {
  const witness = { ...signer("witness", testKey(77)), name: "witness.example" };
  const twice = [signer(LOG_ID), signer(LOG_ID)];
  const cosigned = changed(
    `checkpoint/${SIZE}`,
    checkpointOf(log, SIZE, undefined, [signer(LOG_ID), witness]),
  );
  expect((await auditFiles(cosigned)).findings.count).toBe(0);
  const doubled = changed(`checkpoint/${SIZE}`, checkpointOf(log, SIZE, undefined, twice));
  expect((await found(doubled)).codes).toEqual(["checkpoint-malformed"]);
});

test("a checkpoint that nobody trusted signed is a finding beside one that holds", async () => {
  const files = filesOf(log, [5, SIZE]);
  files.set("checkpoint/5", checkpointOf(log, 5, undefined, [signer(LOG_ID, testKey(9))]));
  expect((await found(files)).codes).toEqual(["checkpoint-untrusted"]);
});

test("a checkpoint changed in any byte is refused", async () => {
  const name = "checkpoint/5";
  const files = filesOf(log, [5, SIZE]);
  const note = files.get(name) ?? new Uint8Array();
  for (let at = 0; at < note.length; at += 1) {
    const bytes = note.slice();
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    const { findings } = await auditFiles(new Map(files).set(name, bytes));
    expect(findings.count, `byte ${at}`).toBe(1);
    expect(findings.first).toMatchObject({ path: name });
  }
});

test("a checkpoint for another origin is refused, though the key is trusted", async () => {
  const other = smallLog(OTHER_LOG_ID);
  const files = filesOf(log, [5, SIZE]);
  files.set("checkpoint/5", checkpointOf(other, 5, undefined, [signer(LOG_ID)]));
  expect((await found(files)).codes).toEqual(["checkpoint-origin"]);
});

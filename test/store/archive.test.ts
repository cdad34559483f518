/** What every archive promises, in a folder as in a bucket. */
import { beforeEach, describe, expect, test } from "vitest";
import { encodeUtf8 } from "../../src/core/text.ts";
import { openArchive } from "../../src/store/archive-location.ts";
import { PLACES, type Place } from "./archives.ts";

const LOG = "0123456789abcdef0123456789abcdef";
const TILE = `${LOG}/tile/0/x001/x234/067`;
const CHECKPOINT = `${LOG}/checkpoint/300`;
const bytes = encodeUtf8("what is archived");
const other = encodeUtf8("something else");

let place: Place;
const fresh = (_: string, make: () => Promise<Place>) =>
  beforeEach(async () => {
    place = await make();
  });

describe.each(PLACES)("an archive %s", (...of) => {
  fresh(...of);

  test("gives back what was put, to the byte, an empty file and a large one too", async () => {
    const archive = await place.open();
    const large = new Uint8Array(3 * 1024 * 1024).map((__, i) => i * 7);
    const files = [
      { path: TILE, bytes },
      { path: `${LOG}/tile/entries/000.p/255`, bytes: large },
      { path: `${LOG}/claim/0`, bytes: new Uint8Array() },
    ];
    await archive.put(files);
    for (const file of files) {
      const found = await (await place.open()).get(file.path);
      expect(Buffer.compare(found ?? Buffer.of(1), file.bytes)).toBe(0);
    }
    expect((await place.files()).size).toBe(3);
  });

  test("takes the same bytes again, and other bytes are a contradiction that changes nothing", async () => {
    const archive = await place.open();
    await archive.put([{ path: TILE, bytes }]);
    await archive.put([{ path: TILE, bytes }]);
    const again = archive.put([{ path: TILE, bytes: other }]);
    await expect(again).rejects.toMatchObject({ code: "archive-contradiction" });
    expect(Buffer.from((await archive.get(TILE)) ?? [])).toEqual(Buffer.from(bytes));
  });

  test("lets exactly one of many create a file at once, and its bytes stand", async () => {
    const contents = Array.from({ length: 20 }, (__, i) => encodeUtf8(`note ${i}`));
    const archives = await Promise.all([place.open(), place.open()]);
    const outcomes = await Promise.all(
      contents.map((content, i) => archives[i % 2]?.create(CHECKPOINT, content)),
    );
    expect(outcomes.filter((outcome) => outcome === "created")).toHaveLength(1);
    const stands = contents[outcomes.indexOf("created")] ?? bytes;
    expect(Buffer.from((await archives[0].get(CHECKPOINT)) ?? [])).toEqual(Buffer.from(stands));
  });
});

describe.each(PLACES)("an archive %s", (...of) => {
  fresh(...of);

  test.each([
    "../outside",
    `${LOG}/../../outside`,
    `${LOG}/checkpoint/../../../outside`,
    `${LOG}/checkpoint/01`,
    `${LOG}/checkpoint/`,
    `${LOG}/claim/-1`,
    `${LOG}/tile/0/1`,
    `${LOG}/tile/0/000.p/0`,
    `${LOG}/tile/0/000\0`,
    `${LOG}/cosignature/1/ABCDEF01`,
    `/${LOG}/checkpoint/1`,
    `${LOG.toUpperCase()}/checkpoint/1`,
    `${LOG}/checkpoint/1\n`,
    "",
  ])("has nothing at %j", async (path) => {
    const archive = await place.open();
    await expect(archive.put([{ path, bytes }])).rejects.toThrow("nothing is stored at");
    await expect(archive.create(path, bytes)).rejects.toThrow("nothing is stored at");
    await expect(archive.get(path)).rejects.toThrow("nothing is stored at");
    await expect(archive.latestCheckpoint(path)).rejects.toThrow("not a log's id");
  });
});

describe.each(PLACES)("an archive %s", (...of) => {
  fresh(...of);

  test("says which checkpoint is of the largest size, whatever else lies beside them", async () => {
    const archive = await place.open();
    for (const size of [9, 10, 2, 300, 100, 20]) {
      await archive.create(`${LOG}/checkpoint/${size}`, encodeUtf8(`note ${size}`));
    }
    for (const name of ["999.tmp", "0400", "latest", ".500", "99999999999999999999"]) {
      await place.stray(`${LOG}/checkpoint/${name}`);
    }
    expect(await archive.latestCheckpoint(LOG)).toEqual({ size: 300n, note: "note 300" });
  });

  test("knows sizes beyond 2^53", async () => {
    const archive = await place.open();
    for (const size of [9007199254740992n, 9007199254740993n]) {
      await archive.create(`${LOG}/checkpoint/${size}`, encodeUtf8(`note ${size}`));
    }
    expect(await archive.latestCheckpoint(LOG)).toMatchObject({ size: 9007199254740993n });
  });

  test("has no checkpoint of a log that it does not know, or only knows tiles of", async () => {
    const archive = await place.open();
    expect(await archive.latestCheckpoint(LOG)).toBeUndefined();
    await archive.put([{ path: TILE, bytes }]);
    expect(await archive.latestCheckpoint(LOG)).toBeUndefined();
    expect(await archive.get(CHECKPOINT)).toBeUndefined();
  });

  test("has an empty note, which no key has signed, where its bytes are no text", async () => {
    const archive = await place.open();
    await archive.create(CHECKPOINT, Uint8Array.of(0xff));
    expect(await archive.latestCheckpoint(LOG)).toEqual({ size: 300n, note: "" });
  });
});

describe.each(PLACES)("an archive %s", (...of) => {
  fresh(...of);

  test("lists the partial files beside a full one, and no others", async () => {
    const archive = await place.open();
    const widths = [1, 12, 100, 255, 3];
    for (const tile of ["001", "002"]) {
      const files = widths.map((width) => ({ path: `${LOG}/tile/0/${tile}.p/${width}`, bytes }));
      await archive.put(files);
    }
    await place.stray(`${LOG}/tile/0/001.p/07`);
    expect((await archive.partials(`${LOG}/tile/0/001`)).sort()).toEqual(
      widths.map((width) => `${LOG}/tile/0/001.p/${width}`).sort(),
    );
    expect(await archive.partials(`${LOG}/tile/0/003`)).toEqual([]);
    await expect(archive.partials(`${LOG}/checkpoint/1`)).rejects.toThrow("no tile");
  });

  test("removes checkpoints, claims and partial files, and takes them again; what is gone may go again", async () => {
    const archive = await place.open();
    const paths = [CHECKPOINT, `${LOG}/claim/1`, `${LOG}/tile/0/000.p/3`];
    await archive.put([TILE, ...paths].map((path) => ({ path, bytes })));
    await archive.remove(paths);
    await archive.remove([...paths, `${LOG}/tile/entries/000.p/3`]);
    expect(Array.from((await place.files()).keys())).toEqual([TILE]);
    await archive.put(paths.map((path) => ({ path, bytes: other })));
    expect((await place.files()).size).toBe(4);
  });

  test.each([
    TILE,
    `${LOG}/tile/entries/000`,
    `${LOG}/cosignature/1/abcdef01`,
    `${LOG}/checkpoint/../1`,
  ])("never removes %s", async (path) => {
    const archive = await place.open();
    await expect(archive.remove([CHECKPOINT, path])).rejects.toThrow("stays");
  });
});

test("ARCHIVE_URL that names neither a folder nor a bucket is refused", async () => {
  await expect(openArchive("https://archive.example/")).rejects.toThrow("neither a folder nor");
});

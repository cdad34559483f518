/** What a recovery asks of an archive: which logs and checkpoints there are, and room for others. */
import { beforeEach, describe, expect, test } from "vitest";
import { encodeUtf8 } from "../../src/core/text.ts";
import { PLACES, type Place } from "./archives.ts";

const LOG = "0123456789abcdef0123456789abcdef";
const OTHER = "f".repeat(32);
const TILE = `${LOG}/tile/0/001`;
const bytes = encodeUtf8("what nobody signed");
const other = encodeUtf8("what nobody signed either");

describe.each(PLACES)("an archive %s", (_, make) => {
  let place: Place;
  beforeEach(async () => {
    place = await make();
  });

  test("lists logs that have a checkpoint, and sizes that ascend as numbers", async () => {
    const archive = await place.open();
    await archive.put([
      ...["9", "10", "2", "300"].map((size) => ({ path: `${LOG}/checkpoint/${size}`, bytes })),
      { path: `${OTHER}/tile/0/000`, bytes },
    ]);
    await place.stray("elsewhere/checkpoint/3");
    expect(await archive.logs()).toContain(LOG);
    expect(await archive.logs()).not.toContain("elsewhere");
    expect(await archive.sizes(LOG)).toEqual([2n, 9n, 10n, 300n]);
    expect(await archive.sizes(OTHER)).toEqual([]);
  });

  test("frees the name of what is set aside and keeps the content, however often it happens", async () => {
    const archive = await place.open();
    for (const content of [bytes, other, bytes]) {
      await archive.put([{ path: TILE, bytes: content }]);
      await archive.setAside([TILE, `${LOG}/tile/0/002`]);
      expect(await archive.get(TILE)).toBeUndefined();
    }
    const files = [...(await place.files())];
    const aside = files.filter(([path]) => /^.{32}\/aside\/[0-9a-f]{16}\/tile\/0\/001$/.test(path));
    expect(aside.map(([, base64]) => Buffer.from(base64, "base64").toString()).sort()).toEqual([
      "what nobody signed",
      "what nobody signed either",
    ]);
    const [path = ""] = aside[0] ?? [];
    expect(await archive.get(path)).toBeDefined();
  });

  test.each([`${LOG}/checkpoint/3`, `${LOG}/cosignature/3/01234567`])(
    "does not set aside %s",
    async (path) => {
      const archive = await place.open();
      await archive.create(path, bytes);
      await expect(archive.setAside([path])).rejects.toThrow("stays");
      expect(await archive.get(path)).toBeDefined();
    },
  );

  test("sets nothing aside that lies outside of a log", async () => {
    const archive = await place.open();
    await expect(archive.setAside([`${LOG}/../${OTHER}/tile/0/001`])).rejects.toThrow("stays");
  });
});

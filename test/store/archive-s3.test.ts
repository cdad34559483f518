/** An archive in a bucket: what it asks of the store, and what it makes of a network. */
import { describe, expect, onTestFinished, test } from "vitest";
import { encodeUtf8 } from "../../src/core/text.ts";
import type { Archive } from "../../src/store/archive.ts";
import { openArchive } from "../../src/store/archive-location.ts";
import { openS3Archive } from "../../src/store/archive-s3.ts";
import { PATIENCE as OURS } from "../../src/store/s3-objects.ts";
import { type Fault, type S3Server, startS3 } from "../s3.ts";
import { IMPATIENCE, PATIENCE, s3Place } from "./archives.ts";

const LOG = "0123456789abcdef0123456789abcdef";
const TILE = `${LOG}/tile/0/000`;
const CHECKPOINT = `${LOG}/checkpoint/300`;
const bytes = encodeUtf8("what is archived");
const unavailable = { code: "archive-unavailable" };

async function opened(
  options: Parameters<typeof startS3>[0] = {},
): Promise<{ server: S3Server; archive: Archive }> {
  const place = await s3Place(options);
  return { server: place.server, archive: await place.open() };
}

async function server(options: Parameters<typeof startS3>[0] = {}): Promise<S3Server> {
  const started = await startS3(options);
  onTestFinished(() => started.close());
  return started;
}

/** Of the next request alone. */
function once(fault: Fault): S3Server["fault"] {
  let left = 1;
  return () => (left-- > 0 ? fault : undefined);
}

describe("before anything is written", () => {
  test("a bucket that replaces objects is refused: two sealers could sign two truths", async () => {
    const { url, objects } = await server({ replaces: true });
    await expect(openArchive(url)).rejects.toThrow("does not honour If-None-Match");
    expect(Array.from(objects.keys())).toEqual([]);
  });

  test("a bucket that takes no locks is refused where locks are asked for", async () => {
    const { url } = await server();
    await expect(openArchive(`${url}&lock=compliance&lock_days=30`)).rejects.toThrow("refuses");
  });

  test("a bucket that is missing, or lets nobody in, is refused by name", async () => {
    const { url } = await server();
    await expect(openArchive(url.replace("archive-bucket", "another"))).rejects.toThrow(
      "refuses: NoSuchBucket",
    );
    process.env["AWS_SECRET_ACCESS_KEY"] = "another";
    await expect(openArchive(url)).rejects.toThrow("refuses: SignatureDoesNotMatch");
  });

  test("one that cannot be reached is tried when it can, and trusted with nothing before", async () => {
    const place = await s3Place({ replaces: true });
    place.server.fault = () => 503;
    const archive = await place.open();
    await expect(archive.put([{ path: TILE, bytes }])).rejects.toMatchObject(unavailable);
    place.server.fault = () => undefined;
    await expect(archive.put([{ path: TILE, bytes }])).rejects.toMatchObject({
      ...unavailable,
      cause: { message: expect.stringContaining("If-None-Match") },
    });
    expect(await archive.get(TILE)).toBeUndefined();
  });
});

const FAULTS: Fault[] = [503, 500, 409, "lost", "silent"];

describe("a network that fails", () => {
  test.each<Fault>([...FAULTS, "cut"])(
    "once (%s) is got over by asking again",
    async (fault) => {
      const { server: store } = await s3Place();
      const archive = await openS3Archive(store.url, fault === "silent" ? IMPATIENCE : PATIENCE);
      for (const path of [TILE, CHECKPOINT]) {
        store.fault = once(fault);
        await archive.put([{ path, bytes }]);
        store.fault = once(fault);
        expect(Buffer.from((await archive.get(path)) ?? [])).toEqual(Buffer.from(bytes));
      }
      store.fault = once(fault);
      expect(await archive.latestCheckpoint(LOG)).toMatchObject({ size: 300n });
      store.fault = once(fault);
      await archive.remove([CHECKPOINT]);
      expect(await archive.latestCheckpoint(LOG)).toBeUndefined();
    },
    60_000,
  );

  test.each(FAULTS)(
    "for good (%s) is unavailable, within bounded attempts",
    async (fault) => {
      const place = await s3Place();
      const url = place.server.url;
      const isSilent = fault === "silent";
      const archive = await openS3Archive(url, isSilent ? IMPATIENCE : PATIENCE);
      place.server.fault = () => fault;
      const before = place.server.asked.length;
      await expect(archive.get(TILE)).rejects.toMatchObject(unavailable);
      const asked = place.server.asked.length - before;
      expect(asked).toBeLessThanOrEqual(PATIENCE.attempts);
      // On a busy machine an attempt's time may be over before it is sent.
      expect(asked).toBeGreaterThanOrEqual(isSilent ? 0 : PATIENCE.attempts);
      await expect(archive.put([{ path: TILE, bytes }])).rejects.toMatchObject(unavailable);
      await expect(archive.create(CHECKPOINT, bytes)).rejects.toMatchObject(unavailable);
      await expect(archive.latestCheckpoint(LOG)).rejects.toMatchObject(unavailable);
      await expect(archive.remove([CHECKPOINT])).rejects.toMatchObject(unavailable);
      await expect(archive.partials(TILE)).rejects.toMatchObject(unavailable);
    },
    60_000,
  );

  test("that is silent is waited for no longer in all attempts than a seal can wait", async () => {
    const place = await s3Place();
    // All attempts would take half an hour, and no busy machine makes that of half a second.
    const patience = { ...PATIENCE, attempts: 9_000, attemptMs: 200, totalMs: 500 };
    const archive = await openS3Archive(place.server.url, patience);
    place.server.fault = () => "silent";
    await expect(archive.get(TILE)).rejects.toMatchObject(unavailable);
    // Four calls follow each other while the transaction of a seal idles, for a minute at the most.
    expect(4 * OURS.totalMs).toBeLessThan(60_000);
  });

  test("that cuts every answer gives out no half of a file", async () => {
    const { server: store, archive } = await opened();
    await archive.put([{ path: TILE, bytes }]);
    store.fault = () => "cut";
    await expect(archive.get(TILE)).rejects.toMatchObject(unavailable);
    await expect(archive.partials(TILE)).rejects.toMatchObject(unavailable);
  });
});

describe("answers that are not to be had, or not to be believed", () => {
  test("an answer that was lost leaves one file, and its creator finds it there", async () => {
    const { server: store, archive } = await opened();
    store.fault = once("lost");
    expect(await archive.create(CHECKPOINT, bytes)).toBe("exists");
    store.fault = once("lost");
    await archive.put([{ path: TILE, bytes }]);
    expect(Buffer.from((await archive.get(CHECKPOINT)) ?? [])).toEqual(Buffer.from(bytes));
  });

  test("a bucket that vanished is unavailable, where a file that is not there is none", async () => {
    const { server: store, archive } = await opened();
    expect(await archive.get(TILE)).toBeUndefined();
    store.fault = () => 404;
    await expect(archive.get(TILE)).rejects.toMatchObject(unavailable);
    await expect(archive.latestCheckpoint(LOG)).rejects.toMatchObject(unavailable);
  });

  test("bytes that are not those of the stored checksum are never given out", async () => {
    const { server: store, archive } = await opened();
    await archive.put([{ path: TILE, bytes }]);
    const key = Array.from(store.objects.keys()).find((name) => name.endsWith(TILE)) ?? "";
    const stored = store.objects.get(key);
    store.objects.set(key, {
      bytes: Buffer.from("altered bytes..."),
      checksum: stored?.checksum ?? "",
    });
    await expect(archive.get(TILE)).rejects.toMatchObject(unavailable);
  });
});

describe("locks", () => {
  test("every file is locked for as long as asked, and the store's own answer says until when", async () => {
    const store = await server({ locks: true });
    const archive = await openS3Archive(`${store.url}&lock=compliance&lock_days=30`, PATIENCE);
    const before = Date.now() + 30 * 86_400_000;
    await archive.put([{ path: TILE, bytes }]);
    await archive.create(CHECKPOINT, bytes);
    for (const path of [TILE, CHECKPOINT]) {
      const until = (await archive.lockedUntil(path))?.getTime() ?? 0;
      expect(until).toBeGreaterThanOrEqual(before - 1_000);
      expect(until).toBeLessThan(before + 60_000);
    }
    expect(archive.lockMs).toBe(30 * 86_400_000);
    expect(await archive.lockedUntil(`${LOG}/checkpoint/1`)).toBeUndefined();
    await archive.remove([CHECKPOINT]);
    expect(await archive.get(CHECKPOINT)).toBeDefined();
  });

  test("one that its owner may lift is none", async () => {
    const store = await server({ locks: true });
    const archive = await openS3Archive(`${store.url}&lock=governance&lock_days=1`, PATIENCE);
    await archive.create(CHECKPOINT, bytes);
    expect(await archive.lockedUntil(CHECKPOINT)).toBeUndefined();
  });
});

test.each([
  ["s3://", "no bucket"],
  ["s3://UPPER_case", "no bucket"],
  ["s3://key:secret@bucket/", "nothing else"],
  ["s3://bucket/?color=red", "color is no parameter"],
  ["s3://bucket/?region=a&region=b", "region is no parameter of an s3: URL, or there twice"],
  ["s3://bucket/?path_style=yes", "path_style is true or false"],
  ["s3://bucket/?endpoint=ftp://host", "http: or https:"],
  ["s3://bucket/?lock=compliance", "belong together"],
  ["s3://bucket/?lock_days=3", "belong together"],
  ["s3://bucket/?lock=compliance&lock_days=0", "belong together"],
  ["s3://bucket/?lock=compliance&lock_days=36501", "belong together"],
  ["s3://bucket/?lock=legal&lock_days=3", "lock is compliance or governance"],
])("%s is no place of an archive", async (url, problem) => {
  await expect(openArchive(url)).rejects.toThrow(problem);
});

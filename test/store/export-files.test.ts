/** Where exports are kept: the same promises of a folder and of a bucket. */
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { ExportFiles } from "../../src/store/export-files.ts";
import { folderExports } from "../../src/store/export-files-folder.ts";
import { s3Exports } from "../../src/store/export-files-s3.ts";
import { exportsIn, openExports } from "../../src/store/export-location.ts";
import { type S3Server, startS3 } from "../s3.ts";
import { testOnSmallDisk } from "../small-disk.ts";

const PATH = `${"0".repeat(32)}/${"1".repeat(32)}.csv`;
const PART_BYTES = 16 * 1024 * 1024;
/** A part is large, and a machine that does other things besides takes long over it. */
const PATIENCE = { attempts: 4, attemptMs: 30_000, pauseMs: 1, totalMs: 60_000 };

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "minutebook-exports-"));
  onTestFinished(() => rm(made, { recursive: true, force: true }));
  return made;
}

async function bucket(): Promise<S3Server> {
  const server = await startS3();
  onTestFinished(() => server.close());
  return server;
}

const PLACES: [string, () => Promise<ExportFiles>][] = [
  ["in a folder", async () => folderExports(join(await folder(), "exports"))],
  ["in a bucket", async () => s3Exports((await bucket()).url.replace("?", "/x?"), PATIENCE)],
];

/** Every byte says where it is. */
function numbered(length: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; at += 4) bytes.writeUInt32BE(at, at);
  return bytes;
}

async function* chunked(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function* failing(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("half of it");
  throw new Error("the source has ended");
}

async function contentOf(files: ExportFiles, from: number, to: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of files.read(PATH, { from, to })) chunks.push(chunk);
  return Buffer.concat(chunks);
}

describe.each(PLACES)("exports %s", (_, open) => {
  test("what was written is read, from any byte to any byte", async () => {
    const files = await open();
    const bytes = numbered(PART_BYTES + 1_000_000);
    await files.write(PATH, chunked(bytes, 999_996));
    expect(await files.size(PATH)).toBe(bytes.length);
    const ranges = [
      [0, bytes.length],
      [0, 1],
      [PART_BYTES - 3, PART_BYTES + 5],
      [bytes.length - 1, bytes.length],
      [77, 77],
    ] as const;
    for (const [from, to] of ranges) {
      expect((await contentOf(files, from, to)).equals(bytes.subarray(from, to))).toBe(true);
    }
  });

  test("a file may be empty", async () => {
    const files = await open();
    await files.write(PATH, chunked(Buffer.of(), 1));
    expect(await files.size(PATH)).toBe(0);
  });

  test("of a write that fails nothing is there, and what was there before stays", async () => {
    const files = await open();
    await expect(files.write(PATH, failing())).rejects.toThrow("the source has ended");
    expect(await files.size(PATH)).toBeUndefined();
    await files.write(PATH, chunked(Buffer.from("whole"), 2));
    await expect(files.write(PATH, failing())).rejects.toThrow("the source has ended");
    expect(String(await contentOf(files, 0, 5))).toBe("whole");
  });

  test("who writes again replaces, and what is removed is gone, also twice", async () => {
    const files = await open();
    await files.write(PATH, chunked(Buffer.from("first, and longer"), 4));
    await files.write(PATH, chunked(Buffer.from("second"), 4));
    expect(await files.size(PATH)).toBe(6);
    for (const _ of [1, 2]) await files.remove(PATH);
    expect(await files.size(PATH)).toBeUndefined();
    const read = contentOf(files, 0, 6);
    await expect(read).rejects.toMatchObject({ code: "exports-unavailable" });
  });

  test("a reader who goes away early leaves nothing open behind", async () => {
    const files = await open();
    await files.write(PATH, chunked(numbered(1_000_000), 10_000));
    for await (const chunk of files.read(PATH, { from: 0, to: 1_000_000 })) {
      expect(chunk.length).toBeGreaterThan(0);
      break;
    }
    await files.remove(PATH);
  });

  test("no path leads out of it", async () => {
    const files = await open();
    for (const path of ["../out", "/etc/passwd", "a/../../b", ".staging/x", "a//b", ""]) {
      await expect(files.write(path, chunked(Buffer.of(), 1)), path).rejects.toThrow("nothing");
    }
  });
});

test.each(PLACES)(
  "of two who make one file anew %s, whoever is second gives way to the first",
  async (_, open) => {
    const files = await open();
    await files.write(PATH, chunked(Buffer.from("damaged"), 4));
    async function* slowly(): AsyncGenerator<Uint8Array> {
      yield Buffer.from("older");
      expect(await files.size(PATH), "what was there is gone from the beginning").toBeUndefined();
      await files.renew(PATH, chunked(Buffer.from("newer"), 2));
    }
    const older = files.renew(PATH, slowly());
    await expect(older).rejects.toMatchObject({ code: "exports-unavailable" });
    expect(String(await contentOf(files, 0, 5))).toBe("newer");
    await files.renew(PATH, chunked(Buffer.from("again"), 2));
    expect(String(await contentOf(files, 0, 5))).toBe("again");
    await expect(files.renew(PATH, failing())).rejects.toThrow("the source has ended");
  },
);

test("a folder whose own folder is missing is no disk that is not mounted: nothing is made", async () => {
  const root = join(await folder(), "unmounted", "exports");
  const write = folderExports(root).write(PATH, chunked(Buffer.from("x"), 1));
  await expect(write).rejects.toMatchObject({ code: "exports-unavailable" });
});

test("what is not in a folder because its disk is not mounted is not gone, and is not written elsewhere", async () => {
  const disk = await folder();
  const root = join(disk, "exports");
  const files = folderExports(root);
  await files.write(PATH, chunked(Buffer.from("x"), 1));
  await rename(root, join(disk, "unmounted"));
  const away = { code: "exports-unavailable" };
  for (const empty of [false, true]) {
    // What another disk is mounted at is an empty folder, or none.
    if (empty) await mkdir(root, { recursive: true });
    await expect(files.size(PATH)).rejects.toMatchObject(away);
    await expect(files.remove(PATH)).rejects.toMatchObject(away);
    await expect(files.write(PATH, chunked(Buffer.from("y"), 1))).rejects.toMatchObject(away);
  }
  await rmdir(root);
  await rename(join(disk, "unmounted"), root);
  expect(await files.size(PATH)).toBe(1);
  await files.remove(PATH);
  expect(await files.size(PATH)).toBeUndefined();
});

test("what a killed process left behind is swept by the next one, an hour later", async () => {
  const root = join(await folder(), "exports");
  await mkdir(join(root, ".staging"), { recursive: true });
  const left = join(root, ".staging", "left");
  await writeFile(left, "half");
  execFileSync("touch", ["-d", "2 hours ago", left]);
  await folderExports(root).write(PATH, chunked(Buffer.from("x"), 1));
  expect(await readdir(join(root, ".staging"))).toEqual([]);
});

testOnSmallDisk("a full disk says so, and leaves nothing that looks whole", async () => {
  const disk = await folder();
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "minutebook-test", disk]);
  onTestFinished(() => void execFileSync("umount", ["--lazy", disk]));
  const files = folderExports(join(disk, "exports"));
  const write = files.write(PATH, chunked(numbered(4_000_000), 65_536));
  await expect(write).rejects.toMatchObject({ code: "no-room" });
  expect(await files.size(PATH)).toBeUndefined();
  await files.write(PATH, chunked(numbered(400_000), 65_536));
  expect(await files.size(PATH)).toBe(400_000);
});

test("a network that fails once is got over, in the middle of a write and of a read", async () => {
  const server = await bucket();
  const files = s3Exports(server.url, PATIENCE);
  const bytes = numbered(PART_BYTES + 8);
  for (const fault of ["lost", 503] as const) {
    // Every other request: each step fails once, and is done when it is asked for again.
    server.fault = ({ number }) => (number % 2 === 0 ? fault : undefined);
    await files.renew(PATH, chunked(bytes, 1_000_000));
    expect((await contentOf(files, 0, 5_000_000)).equals(bytes.subarray(0, 5_000_000))).toBe(true);
    await files.remove(PATH);
    server.fault = () => undefined;
    expect(await files.size(PATH)).toBeUndefined();
  }
});

test("a bucket that is away for good is unavailable, within bounded attempts", async () => {
  const server = await bucket();
  const files = s3Exports(server.url, PATIENCE);
  server.fault = () => 503;
  const away = { code: "exports-unavailable" };
  await expect(files.write(PATH, chunked(Buffer.from("x"), 1))).rejects.toMatchObject(away);
  await expect(files.size(PATH)).rejects.toMatchObject(away);
  expect(server.asked.length).toBe(2 * PATIENCE.attempts);
});

test("a bucket that is no more is away, and what was kept in it is not gone", async () => {
  const server = await bucket();
  const files = s3Exports(server.url, PATIENCE);
  await files.write(PATH, chunked(Buffer.from("x"), 1));
  server.fault = () => 404;
  const away = { code: "exports-unavailable" };
  await expect(files.size(PATH)).rejects.toMatchObject(away);
  await expect(files.remove(PATH)).rejects.toMatchObject(away);
  server.fault = () => undefined;
  expect(await files.size(PATH)).toBe(1);
});

test("exports lie inside the archive unless something else is said, and are never locked", async () => {
  expect(exportsIn("/var/archive")).toBe("/var/archive/exports");
  expect(exportsIn("file:///var/archive/")).toBe("file:///var/archive/exports");
  expect(exportsIn("s3://b?region=r&lock=compliance&lock_days=9")).toBe("s3://b/exports?region=r");
  await expect(openExports("https://b/x")).rejects.toThrow("neither a folder nor");
  await expect(openExports("s3://bkt?lock=compliance&lock_days=9")).rejects.toThrow("locked");
});

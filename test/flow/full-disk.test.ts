/** The disk under the database is full. */
import { execFileSync } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { type Embedded, startPostgres } from "../../src/embedded.ts";
import { connect } from "../../src/store/connect.ts";
import { migrate } from "../../src/store/migrations.ts";
import { testOnSmallDisk } from "../small-disk.ts";
import { MIGRATIONS } from "../template.ts";
import {
  codes,
  type Door,
  entriesOf,
  newAgent,
  newLog,
  ofKind,
  openDoor,
  reported,
} from "./door.ts";
import { replay } from "./replay.ts";

const DISK = "size=220m";
const BATCH = 100;
const BATCHES_MAX = 400;
/** One WAL segment, for which there is no room any more once the ballast lies there. */
const SEGMENT = 16 * 1024 * 1024;

/** Opens a door on the server, gives it to `use`, and closes both again. */
async function within<T>(
  folder: string,
  archive: string,
  use: (door: Door, server: Embedded) => Promise<T>,
): Promise<T> {
  const server = await startPostgres({ folder, settings: { max_wal_size: "64MB" } });
  const owner = connect(server.urls.owner, { max: 1 });
  await migrate({ sql: owner, folder: MIGRATIONS, appliedBy: "test" });
  const sql = connect(server.urls.writer, { max: 2 });
  const door = openDoor(sql, { archive, seed: archive });
  try {
    return await use(door, server);
  } finally {
    await door.close();
    await Promise.all([owner, sql].map((pool) => pool.end({ timeout: 1 })));
    await server.stop();
  }
}

testOnSmallDisk(
  "a full disk under the database is answered busy, and loses nothing that was accepted",
  async () => {
    const disk = await mkdtemp(join(tmpdir(), "minutebook-disk-"));
    const archive = await mkdtemp(join(tmpdir(), "minutebook-disk-archive-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", DISK, "minutebook-test", disk]);
    onTestFinished(async () => {
      execFileSync("umount", ["--lazy", disk]);
      await Promise.all([disk, archive].map((folder) => rm(folder, { recursive: true })));
    });
    await chmod(disk, 0o755);
    const folder = join(disk, "postgres");
    const ballast = join(disk, "ballast");
    const batch = (log: string, n: number): string[] =>
      Array.from({ length: BATCH }, (_, i) => {
        const number = String(n * BATCH + i + 1);
        return reported(1, log, { counter: number, job: { id: number } });
      });

    const { accepted, log } = await within(folder, archive, async (door) => {
      const log = await newLog(door, "full disk");
      await newAgent(door, log, 1);
      await fill(disk, ballast);
      const accepted = new Map<string, string | undefined>();
      let refusal: unknown;
      for (let n = 0; n < BATCHES_MAX && refusal === undefined; n += 1) {
        try {
          const { results } = await door.submit(...batch(log, n));
          for (const { digest, index } of results) accepted.set(digest, index);
        } catch (error) {
          refusal = error;
        }
      }
      expect(refusal).toMatchObject({ code: "busy" });
      return { accepted, log };
    });

    await rm(ballast);
    await within(folder, archive, async (door, server) => {
      for (let n = 0; n <= accepted.size / BATCH; n += 1) {
        const answer = await door.submit(...batch(log, n));
        expect(new Set(codes(answer))).toEqual(new Set(["accepted"]));
        for (const { digest, index } of answer.results) {
          expect(accepted.get(digest) ?? index).toBe(index);
        }
      }
      const reader = connect(server.urls.reader, { max: 1 });
      const entries = await entriesOf(reader, log);
      await reader.end();
      replay(entries);
      expect(ofKind(entries, "usage")).toHaveLength(accepted.size + BATCH);
    });
  },
  120_000,
);

/** Leaves half a WAL segment. */
async function fill(disk: string, ballast: string): Promise<void> {
  const line = execFileSync("df", ["--output=avail", "-B1", disk]).toString().split("\n")[1];
  await writeFile(ballast, new Uint8Array(Math.max(0, Number(line) - SEGMENT / 2)));
}

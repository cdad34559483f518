/** What of a log stays when time has passed, in the database and in the archive. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { retain, retainLoop } from "../../../src/flow/log/retain.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import type { Archive } from "../../../src/store/archive.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import { insertCosignature } from "../../../src/store/cosignatures.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { CHAIN_START, Chain, checkpointed, sealerOf } from "../chain.ts";
import { archived, archiveFolder, naiveClaims, naiveFiles } from "../folder.ts";
import { ask } from "../guarded.ts";

const MINUTE = 60_000;

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

interface Grown {
  chain: Chain;
  root: string;
  sealer: ReturnType<typeof sealerOf>;
}

/** Sealed at each size, at so many minutes after the start. */
async function grown(
  number: number,
  steps: readonly (readonly [minute: number, size: number])[],
): Promise<Grown> {
  const chain = new Chain(number);
  const root = await archiveFolder();
  const sealer = sealerOf(db.writer, root);
  for (const [minute, size] of steps) {
    sealer.now = CHAIN_START + minute * MINUTE;
    await chain.growTo(db.writer, size);
    await seal({ ...sealer, log: chain.log });
  }
  return { chain, root, sealer };
}

/** Until nothing is left to do, at so many minutes after the start. */
async function retained({ chain, sealer }: Grown, minute: number): Promise<void> {
  sealer.now = CHAIN_START + minute * MINUTE;
  while (await retain({ ...sealer, log: chain.log }));
}

function sizesIn(files: ReadonlyMap<string, string>): number[] {
  const sizes = Array.from(files.keys(), (path) => /\/checkpoint\/(\d+)$/.exec(path)?.[1]);
  return sizes.flatMap((size) => (size === undefined ? [] : [Number(size)])).sort((a, b) => a - b);
}

async function expectCheckpoints({ chain, root }: Grown, sizes: readonly number[]): Promise<void> {
  expect(await checkpointed(db.reader, chain.log)).toEqual(sizes.map(BigInt));
  expect(sizesIn(await archived(root))).toEqual(sizes);
}

const cosign = (chain: Chain, size: number): Promise<void> =>
  insertCosignature(db.writer, {
    ...{ log: chain.log, size: BigInt(size), name: "witness", key_id: "00000001" },
    ...{ line: "— witness AAAA\n", time: 1n },
  });

const EVERY_FOUR_MINUTES = Array.from({ length: 12 }, (_, i) => [i * 4, i + 1] as const);

describe("checkpoints", () => {
  test("kept are the latest and the newest of each ten minutes, once an hour has passed", async () => {
    const log = await grown(1, EVERY_FOUR_MINUTES);
    await retained(log, 59);
    await expectCheckpoints(log, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    await retained(log, 70);
    await expectCheckpoints(log, [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    await retained(log, 200);
    await expectCheckpoints(log, [3, 5, 8, 10, 12]);
    await retained(log, 100_000);
    await expectCheckpoints(log, [3, 5, 8, 10, 12]);
  });

  test("kept is every one that was cosigned, and that an adopted archive goes on from", async () => {
    const log = await grown(2, EVERY_FOUR_MINUTES);
    await cosign(log.chain, 2);
    await adopt(log.chain, 7);
    await retained(log, 200);
    await expectCheckpoints(log, [2, 3, 5, 7, 8, 10, 12]);
  });

  test("the latest stays however old it is, and a log goes on from it", async () => {
    const log = await grown(3, [
      [1, 1],
      [2, 2],
    ]);
    await retained(log, 10_000);
    await expectCheckpoints(log, [2]);
    await log.chain.growTo(db.writer, 3);
    expect(await seal({ ...log.sealer, log: log.chain.log })).toMatchObject({ size: 3n });
    await ask(sealerOf(db.writer, log.root), log.chain.log);
    await retained(log, 30_000);
    await expectCheckpoints(log, [2, 3]);
  });

  test("the database refuses to delete what is kept, to the owner as well, and lets the rest go", async () => {
    const { chain } = await grown(4, EVERY_FOUR_MINUTES);
    await cosign(chain, 1);
    const remove = (sql: FreshDatabase["owner"], size: number) =>
      sql`delete from checkpoints where log = ${chain.log} and size = ${size}`;
    for (const kept of [1, 3, 12]) {
      await expect(remove(db.owner, kept)).rejects.toThrow(/is kept/);
      await expect(
        db.superuser.begin(async (tx) => {
          await tx`set local session_replication_role = replica`;
          await tx`delete from checkpoints where log = ${chain.log} and size = ${kept}`;
        }),
      ).rejects.toThrow(/is kept/);
    }
    await expect(db.owner`delete from checkpoints where log = ${chain.log}`).rejects.toThrow();
    await expect(remove(db.writer, 2)).rejects.toThrow(/permission denied/);
    await expect(db.reader`select remove_checkpoints(${chain.log}, '{2}')`).rejects.toThrow(
      /permission denied/,
    );
    await db.writer`select remove_checkpoints(${chain.log}, '{1, 2, 3, 12}')`;
    expect(await checkpointed(db.reader, chain.log)).toEqual(
      [1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12].map(BigInt),
    );
    expect((await remove(db.owner, 4)).count).toBe(1);
  });
});

/** Past the one door, like all of a chain. */
async function adopt(chain: Chain, size: number): Promise<void> {
  const entry = JSON.stringify({ body: { size: String(size) } });
  await db.owner`
    insert into entries (log, index, kind, at, prev, leaf, bytes)
    values (
      ${chain.log}, 1000, 'archive_adopted', now(), ${new Uint8Array(32)}, ${new Uint8Array(32)},
      ${Buffer.from(entry)}
    )`;
}

describe("partial tiles and bundles", () => {
  test("go once their full one is there and an hour has passed, with the claims of checkpoints that went", async () => {
    const log = await grown(10, [
      [1, 100],
      [2, 200],
      [3, 300],
      [4, 600],
      [90, 700],
      [91, 800],
    ]);
    const sizes = [100, 200, 300, 600, 700, 800];
    const all = new Map([...naiveFiles(log.chain, sizes), ...naiveClaims(log.chain, sizes)]);
    await retained(log, 63);
    expect(withoutCheckpoints(await archived(log.root))).toEqual(all);
    await retained(log, 100);
    const gone = /\/tile\/(?:0|entries)\/00[01]\.p\/|\/claim\/[123]00$/;
    const rest = Array.from(all).filter(([path]) => !gone.test(path));
    expect(withoutCheckpoints(await archived(log.root))).toEqual(new Map(rest));
    await expectCheckpoints(log, [600, 700, 800]);
  });

  test("go at every level", async () => {
    const log = await grown(11, [
      [1, 200],
      [2, 65_300],
      [3, 65_792],
      [90, 65_800],
    ]);
    await retained(log, 200);
    const files = await archived(log.root);
    const partial = Array.from(files.keys()).filter((path) => path.includes(".p/"));
    expect(partial.sort()).toEqual(
      [...["tile/1/001.p/1", "tile/2/000.p/1"], ...["tile/0/257.p/8", "tile/entries/257.p/8"]]
        .map((path) => `${log.chain.log}/${path}`)
        .sort(),
    );
    for (const [path, bytes] of naiveFiles(log.chain, [65_800])) {
      expect(files.get(path), path).toBe(bytes);
    }
  });
});

const withoutCheckpoints = (files: Map<string, string>) =>
  new Map(Array.from(files).filter(([path]) => !path.includes("/checkpoint/")));

describe("when it is cut short", () => {
  const minutes = Array.from({ length: 6 }, (_, i) => [i, 100 * (i + 1)] as const);

  test.each([
    ["before", async (_: Archive, __: readonly string[]) => undefined],
    [
      "after half of",
      (archive: Archive, paths: readonly string[]) => archive.remove(paths.slice(3)),
    ],
    ["after", (archive: Archive, paths: readonly string[]) => archive.remove(paths)],
  ])("%s the files went, the rows are back and the next one ends it", async (when, work) => {
    const log = await grown({ before: 20, "after half of": 21, after: 22 }[when] ?? 0, [
      ...minutes,
      [100, 700],
    ]);
    const { archive } = log.sealer;
    const dying: Archive = {
      ...archive,
      remove: async (paths) => {
        await work(archive, paths);
        throw new Error("dead");
      },
    };
    log.sealer.now = CHAIN_START + 200 * MINUTE;
    const cut = retain({ ...log.sealer, archive: dying, log: log.chain.log });
    await expect(cut).rejects.toThrow("dead");
    expect(await checkpointed(db.reader, log.chain.log)).toHaveLength(7);
    await retained(log, 200);
    await expectCheckpoints(log, [600, 700]);
    const partial = Array.from((await archived(log.root)).keys()).filter((path) =>
      /tile\/(?:0|entries)\/00[01]\.p/.test(path),
    );
    expect(partial).toEqual([]);
    await ask(sealerOf(db.writer, log.root), log.chain.log);
  });

  test("processes at once end it together", async () => {
    const log = await grown(23, EVERY_FOUR_MINUTES);
    log.sealer.now = CHAIN_START + 200 * MINUTE;
    const several = Array.from({ length: 4 }, () => retain({ ...log.sealer, log: log.chain.log }));
    await Promise.all(several);
    await retained(log, 200);
    await expectCheckpoints(log, [3, 5, 8, 10, 12]);
  });
});

test("a store that locks what it is given is left alone until the locks are over", async () => {
  const log = await grown(30, EVERY_FOUR_MINUTES);
  const locking = { ...log.sealer.archive, lockMs: 24 * 60 * MINUTE };
  const locked: Grown = { ...log, sealer: Object.assign(log.sealer, { archive: locking }) };
  await retained(locked, 24 * 60 + 9);
  await expectCheckpoints(locked, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  await retained(locked, 24 * 60 + 100);
  await expectCheckpoints(locked, [3, 5, 8, 10, 12]);
});

test("the loop goes over every log that is due, whatever becomes of another, and then rests", async () => {
  const fresh = await freshDatabase();
  onTestFinished(() => fresh.drop());
  const root = await archiveFolder();
  const sealer = sealerOf(fresh.writer, root);
  const chains = [40, 41, 42].map((number) => new Chain(number));
  for (const [minute, size] of EVERY_FOUR_MINUTES) {
    sealer.now = CHAIN_START + minute * MINUTE;
    for (const chain of chains) {
      await chain.growTo(fresh.writer, size);
      await seal({ ...sealer, log: chain.log });
    }
  }
  sealer.now = CHAIN_START + 200 * MINUTE;
  const [good, bad, other] = chains.map(({ log }) => log);
  const archive = folderArchive(root);
  const failing: Archive = {
    ...archive,
    remove: async (paths) => {
      if (paths.some((path) => path.startsWith(bad ?? ""))) throw new Error("refused");
      await archive.remove(paths);
    },
  };
  const stop = new AbortController();
  const failed: unknown[] = [];
  const done = retainLoop({
    ...{ ...sealer, archive: failing, signal: stop.signal },
    onFailure: (_, log) => failed.push(log),
    onRound: () => stop.abort(),
  });
  await done;
  expect(failed).toEqual([bad]);
  for (const log of [good, other]) {
    expect(await checkpointed(fresh.reader, log ?? "")).toEqual([3n, 5n, 8n, 10n, 12n]);
  }
  expect(await checkpointed(fresh.reader, bad ?? "")).toHaveLength(12);
});

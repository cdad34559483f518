import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seal } from "../../../src/flow/log/seal.ts";
import { naiveRoot } from "../../core/merkle.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { CHAIN_START, Chain, nodeHash, sealerOf } from "../chain.ts";
import { archived, archiveFolder, expectArchive } from "../folder.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

describe("what a seal leaves in the archive", () => {
  test("sizes 1, 255, 256, 257 and beyond 65,536, sealed in steps, equal the naive tree", async () => {
    const sizes = [1, 255, 256, 257, 65_536, 65_537];
    const chain = new Chain(1);
    const root = await archiveFolder();
    const sealer = sealerOf(db.writer, root);
    for (const size of sizes) {
      await chain.growTo(db.writer, size);
      const sealed = await seal({ ...sealer, log: chain.log });
      expect(sealed).toEqual({ size: BigInt(size), root: naiveRoot(chain.leaves) });
    }
    await expectArchive(root, chain, sizes);
  });

  test("partial tiles and bundles are there for every size that was checkpointed", async () => {
    let number = 100;
    const steps = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(steps, async (increments) => {
        const chain = new Chain(number++);
        const root = await archiveFolder();
        const sealer = sealerOf(db.writer, root);
        const sizes: number[] = [];
        for (const increment of increments) {
          sizes.push(chain.entries.length + increment);
          await chain.growTo(db.writer, chain.entries.length + increment);
          await seal({ ...sealer, log: chain.log });
        }
        await expectArchive(root, chain, sizes);
      }),
      { numRuns: 12 },
    );
  });

  test("the database says of each checkpoint what the archive holds", async () => {
    const chain = new Chain(2);
    const root = await archiveFolder();
    const sealer = sealerOf(db.writer, root);
    for (const size of [3, 300]) {
      await chain.growTo(db.writer, size);
      await seal({ ...sealer, log: chain.log });
    }
    const rows = await db.reader`
      select size, root, note from checkpoints where log = ${chain.log} order by size`;
    expect(rows.map(({ size }) => size)).toEqual([3n, 300n]);
    const files = await archived(root);
    for (const { size, note, root: stored } of rows) {
      expect(files.get(`${chain.log}/checkpoint/${size}`)).toBe(
        Buffer.from(note).toString("base64"),
      );
      expect(stored).toEqual(naiveRoot(chain.leaves.slice(0, Number(size))));
    }
  });
});

test("a log without anything new is left alone", async () => {
  const chain = new Chain(3);
  const root = await archiveFolder();
  const sealer = sealerOf(db.writer, root);
  await chain.growTo(db.writer, 5);
  await seal({ ...sealer, log: chain.log });
  expect(await seal({ ...sealer, log: chain.log })).toBeUndefined();
  await expectArchive(root, chain, [5]);
});

test("L31: when the clock steps back, the time of the checkpoints does not", async () => {
  const chain = new Chain(5);
  const sealer = sealerOf(db.writer, await archiveFolder());
  for (const [size, now] of [
    [1, CHAIN_START + 60_000],
    [2, CHAIN_START],
    [3, CHAIN_START + 61_000],
  ] as const) {
    sealer.now = now;
    await chain.growTo(db.writer, size);
    await seal({ ...sealer, log: chain.log });
  }
  const rows = await db.reader<{ sealed_at: Date }[]>`
    select sealed_at from checkpoints where log = ${chain.log} order by size`;
  expect(rows.map((row) => row.sealed_at.getTime() - CHAIN_START)).toEqual([
    60_000, 60_000, 61_000,
  ]);
});

test("sealing 100 entries costs as many hashes on a log of 20,000 as on one of 1,000", async () => {
  const sealer = sealerOf(db.writer, await archiveFolder());
  const costs: number[] = [];
  for (const [number, size] of [
    [6, 1_000],
    [7, 20_000],
  ] as const) {
    const chain = new Chain(number);
    await chain.growTo(db.writer, size);
    await seal({ ...sealer, log: chain.log });
    await chain.growTo(db.writer, size + 100);
    let hashes = 0;
    const counting = (bytes: Uint8Array) => {
      hashes += 1;
      return nodeHash(bytes);
    };
    await seal({ ...sealer, hash: counting, log: chain.log });
    costs.push(hashes);
  }
  const [small = 0, large = 0] = costs;
  expect(large).toBeLessThanOrEqual(1.5 * small);
});

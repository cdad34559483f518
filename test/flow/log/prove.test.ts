import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Hash } from "../../../src/core/hash.ts";
import {
  consistencyProof,
  inclusionProof,
  leafNodes,
  type ReadNode,
  verifyConsistency,
} from "../../../src/core/proof.ts";
import { encodeBase64 } from "../../../src/core/text.ts";
import {
  type Proofs,
  proveConsistency,
  proveEntries,
  proveInclusion,
  proveIndex,
  proveSizes,
} from "../../../src/flow/log/prove.ts";
import { openPublished } from "../../../src/flow/log/published.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import type { Archive } from "../../../src/store/archive.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import { naiveRoot } from "../../core/merkle.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { Chain, nodeHash, sealerOf } from "../chain.ts";
import { archiveFolder } from "../folder.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

interface Proven {
  chain: Chain;
  root: string;
  proofs: Proofs;
}

async function sealedAt(number: number, sizes: readonly number[]): Promise<Proven> {
  const chain = new Chain(number);
  const root = await archiveFolder();
  const sealer = sealerOf(db.writer, root);
  for (const size of sizes) {
    await chain.growTo(db.writer, size);
    await seal({ ...sealer, log: chain.log });
  }
  const published = openPublished({ ...sealer, sql: db.reader });
  return { chain, root, proofs: { archive: folderArchive(root), published, hash: nodeHash } };
}

const EDGES = [0, 1, 2, 127, 128, 255, 256, 257, 511, 512, 65_279, 65_280, 65_535, 65_536];

/** Where something begins or ends. */
function edges(size: number): bigint[] {
  return [...new Set([...EDGES, size - 2, size - 1])].filter((i) => i >= 0 && i < size).map(BigInt);
}

const every = (size: number) => Array.from({ length: size }, (_, i) => BigInt(i));

/** Nodes from the entries, each computed once. */
function oracle(leaves: readonly Hash[]): ReadNode {
  const read = leafNodes(leaves, nodeHash);
  const known = new Map<string, Hash>();
  return (node) => {
    const key = `${node.level}/${node.index}`;
    const hash = known.get(key) ?? read(node);
    known.set(key, hash);
    return hash;
  };
}

const texts = (hashes: readonly Hash[]) => hashes.map((hash) => encodeBase64(hash));

/** From tiles the same as from the entries themselves. */
async function expectAgreement({ chain, proofs }: Proven, size: number): Promise<void> {
  const read = oracle(chain.leaves.slice(0, size));
  const to = BigInt(size);
  const indices = size <= 600 ? every(size) : edges(size);
  const paths = await proveInclusion(proofs, chain.log, indices, to);
  expect([...paths.keys()]).toEqual(indices);
  for (const [index, path] of paths) {
    expect(texts(path)).toEqual(texts(inclusionProof(index, to, read, nodeHash)));
  }
  for (const from of edges(size).map((index) => index + 1n)) {
    const path = await proveConsistency(proofs, chain.log, from, to);
    expect(texts(path)).toEqual(texts(consistencyProof(from, to, read, nodeHash)));
  }
}

/** What may go when the log has grown: every partial tile whose full one is there. */
async function dropCompleted({ chain, root }: Proven, sizes: readonly number[]): Promise<void> {
  const now = chain.entries.length;
  for (const size of sizes) {
    const tile = Math.floor(size / 256);
    if (size % 256 === 0 || (tile + 1) * 256 > now) continue;
    const name = String(tile).padStart(3, "0");
    await rm(join(root, chain.log, "tile", "0", `${name}.p`, String(size % 256)));
  }
}

describe("proofs from tiles are those from the entries", () => {
  test("at 1, 2, 255, 256, 257, 511, 512, 513 and in between", async () => {
    const sizes = [1, 2, 7, 255, 256, 257, 300, 511, 512, 513, 600];
    const proven = await sealedAt(1, sizes);
    for (const size of sizes) await expectAgreement(proven, size);
  });

  test("at 65,535, 65,536 and 65,537, where a third level begins", async () => {
    const sizes = [65_535, 65_536, 65_537];
    const proven = await sealedAt(2, sizes);
    for (const size of sizes) await expectAgreement(proven, size);
  });

  test("at whatever sizes a log was sealed, also when partial tiles went since", async () => {
    let number = 100;
    const steps = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(steps, async (increments) => {
        const sizes = increments.map((_, i) => increments.slice(0, i + 1).reduce((a, b) => a + b));
        const proven = await sealedAt(number++, sizes);
        await dropCompleted(proven, sizes);
        for (const size of sizes) await expectAgreement(proven, size);
      }),
      { numRuns: 8 },
    );
  });
});

test("however many entries are proven, each tile is read once", async () => {
  const { chain, proofs } = await sealedAt(3, [600]);
  const read: string[] = [];
  const get: Archive["get"] = async (path) => {
    read.push(path);
    return await proofs.archive.get(path);
  };
  const archive = { ...proofs.archive, get };
  await proveInclusion({ archive, hash: nodeHash }, chain.log, every(600), 600n);
  expect(read.sort()).toEqual(
    ["tile/0/000", "tile/0/001", "tile/0/002.p/88", "tile/1/000.p/2"].map(
      (path) => `${chain.log}/${path}`,
    ),
  );
});

describe("an archive that is not as it was written", () => {
  const TILE = ["tile", "0", "000.p", "5"];

  test("proves nothing by a tile that is missing or cut", async () => {
    const { chain, root, proofs } = await sealedAt(4, [5]);
    const file = join(root, chain.log, ...TILE);
    await writeFile(file, (await readFile(file)).subarray(0, 4 * 32));
    await expect(proveIndex(proofs, chain.log, { index: 1n })).rejects.toThrow("cut short");
    await rm(file);
    await expect(proveIndex(proofs, chain.log, { index: 1n })).rejects.toThrow(
      "not in the archive",
    );
    await expect(proveSizes(proofs, chain.log, { from: 3n })).rejects.toThrow("not in the archive");
  });

  test("proves nothing by a tile that was altered: no text leaves that does not hold", async () => {
    const { chain, root, proofs } = await sealedAt(5, [5]);
    const file = join(root, chain.log, ...TILE);
    const bytes = await readFile(file);
    for (const offset of [0, 40, 70, 100, 159]) {
      const altered = Uint8Array.from(bytes, (byte, i) => (i === offset ? byte ^ 1 : byte));
      await writeFile(file, altered);
      await expect(proveIndex(proofs, chain.log, { index: 1n })).rejects.toThrow("that was signed");
    }
  });

  test("is said to be away while it is", async () => {
    const { chain, root, proofs } = await sealedAt(6, [5]);
    await rm(root, { recursive: true });
    for (const asked of [
      proveIndex(proofs, chain.log, { index: 1n }),
      proveSizes(proofs, chain.log, { from: 3n }),
    ]) {
      await expect(asked).rejects.toMatchObject({ code: "archive-unavailable" });
    }
  });
});

describe("what is asked for", () => {
  let sealed: Proven;
  let number = 7;
  const inclusion = (index: bigint, size?: bigint) =>
    proveIndex(sealed.proofs, sealed.chain.log, { index, size });
  const consistency = (from: bigint, to?: bigint) =>
    proveSizes(sealed.proofs, sealed.chain.log, { from, to });

  beforeEach(async () => {
    sealed = await sealedAt(number++, [5, 300]);
  });

  test("a size that was left out is the published one", async () => {
    expect(await inclusion(4n)).toBe(await inclusion(4n, 300n));
    expect(await consistency(5n)).toEqual(await consistency(5n, 300n));
    expect((await consistency(5n)).to).toBe(300n);
  });

  test("any size that somebody kept can be proven to be the beginning of the published one", async () => {
    for (const from of [1n, 4n, 5n, 6n, 256n, 299n, 300n]) {
      const { to, hashes } = await consistency(from);
      const { leaves } = sealed.chain;
      const fromRoot = naiveRoot(leaves.slice(0, Number(from)));
      const toRoot = naiveRoot(leaves);
      expect(verifyConsistency({ from, to, proof: hashes, fromRoot, toRoot })).toBe(true);
    }
  });

  test("an index that is not below the size, and sizes that do not ascend from 1, are no requests", async () => {
    const refused = { code: "invalid-request" };
    await expect(inclusion(300n)).rejects.toMatchObject(refused);
    await expect(inclusion(5n, 5n)).rejects.toMatchObject(refused);
    await expect(consistency(0n)).rejects.toMatchObject(refused);
    await expect(consistency(6n, 5n)).rejects.toMatchObject(refused);
    await expect(consistency(301n)).rejects.toMatchObject(refused);
  });

  test("sizes without a checkpoint are missing, and those beyond the published one are said to be", async () => {
    await expect(inclusion(0n, 6n)).rejects.toMatchObject({ code: "not-found" });
    await expect(consistency(1n, 299n)).rejects.toMatchObject({ code: "not-found" });
    await expect(inclusion(0n, 301n)).rejects.toMatchObject({ code: "beyond-checkpoint" });
    await expect(consistency(1n, 301n)).rejects.toMatchObject({ code: "beyond-checkpoint" });
    const other = proveIndex(sealed.proofs, "f".repeat(32), { index: 0n });
    await expect(other).rejects.toMatchObject({ code: "not-found" });
  });

  test("entries are proven as far as the published checkpoint goes, and the rest not yet", async () => {
    const { chain, proofs } = sealed;
    await chain.growTo(db.writer, 302);
    const entries = chain.entries.slice(298);
    const proven = await proveEntries(proofs, chain.log, entries);
    expect([...proven.keys()]).toEqual([298n, 299n]);
    expect((await proveEntries(proofs, "f".repeat(32), entries)).size).toBe(0);
  });

  test("an entry that is not the one that was sealed is proven by nothing", async () => {
    const { chain, proofs } = sealed;
    const [entry] = chain.entries.slice(17);
    if (entry === undefined) throw new Error("no entry");
    const bytes = Uint8Array.from(entry.bytes, (byte, i) => (i === 9 ? byte ^ 1 : byte));
    const altered = proveEntries(proofs, chain.log, [{ ...entry, bytes }]);
    await expect(altered).rejects.toThrow("entry 17 is not in the tree of 300 that was signed");
  });
});

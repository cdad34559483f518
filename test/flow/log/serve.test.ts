import { afterAll, beforeAll, expect, test } from "vitest";
import { decodeBundle } from "../../../src/core/bundle.ts";
import { encodeBase64 } from "../../../src/core/text.ts";
import { parseTilePath } from "../../../src/core/tile.ts";
import { proveEntries, proveIndex, proveSizes } from "../../../src/flow/log/prove.ts";
import { openPublished } from "../../../src/flow/log/published.ts";
import { type Serving, serveSizes, serveTile } from "../../../src/flow/log/serve.ts";
import { openVisibility } from "../../../src/flow/log/visibility.ts";
import type { Archive } from "../../../src/store/archive.ts";
import { naiveTiles } from "../../core/merkle.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { sealerOf } from "../chain.ts";
import { policyOf, TestWitness } from "../witness.ts";
import { addCosignature, type SealedLog, sealedLog } from "../witnessed.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

const witness = new TestWitness("late", 71);

/** Published only as far as the witness has cosigned. */
function servingOf({ submitting }: SealedLog, archive: Archive = submitting.archive): Serving {
  const sql = db.reader;
  const published = openPublished({ ...submitting, sql, policy: policyOf([witness], 1) });
  const { guard } = sealerOf(db.writer, archive);
  const clock = { now: () => 0 };
  const visibility = openVisibility({ sql, writer: db.writer, guard, clock });
  return { sql, archive, published, visibility };
}

function serve(serving: Serving, log: string, path: string): Promise<Uint8Array> {
  const tile = parseTilePath(path);
  if (tile === undefined) throw new Error("no tile");
  return serveTile(serving, log, { path, tile });
}

/** As when partial tiles and bundles have gone because the full ones are there. */
function withoutPartials(archive: Archive): Archive {
  return { ...archive, get: async (path) => (/\.p\//.test(path) ? undefined : archive.get(path)) };
}

test("what no quorum has signed yet is not served, listed or proven", async () => {
  const sealed = await sealedLog(db.writer, 501, [100, 300]);
  const { chain, log } = sealed;
  const serving = servingOf(sealed);
  await expect(serveSizes(serving, log, { limit: 10 })).rejects.toMatchObject({
    code: "not-found",
  });
  await addCosignature(db.writer, log, 100n, witness);
  expect(await serveSizes(serving, log, { limit: 10 })).toEqual({ sizes: [100n] });
  const beyond = { code: "beyond-checkpoint" };
  for (const path of ["tile/0/000", "tile/0/001.p/44", "tile/1/000.p/1", "tile/entries/000"]) {
    await expect(serve(serving, log, path)).rejects.toMatchObject(beyond);
  }
  await expect(proveIndex(serving, log, { index: 1n, size: 300n })).rejects.toMatchObject(beyond);
  await expect(proveSizes(serving, log, { from: 1n, to: 300n })).rejects.toMatchObject(beyond);
  const proven = await proveEntries(serving, log, chain.entries);
  expect(proven.size).toBe(100);
});

test("what the published checkpoint implies is served although its partial tiles went", async () => {
  const sealed = await sealedLog(db.writer, 502, [100, 300]);
  const { chain, log, submitting } = sealed;
  await addCosignature(db.writer, log, 100n, witness);
  const serving = servingOf(sealed, withoutPartials(submitting.archive));
  const [tile] = naiveTiles(chain.leaves.slice(0, 100)).values();
  const served = await serve(serving, log, "tile/0/000.p/100");
  expect(encodeBase64(served)).toBe(encodeBase64(tile ?? new Uint8Array()));
  const bundle = decodeBundle(await serve(serving, log, "tile/entries/000.p/100"));
  const entries = chain.entries.slice(0, 100).map(({ bytes }) => encodeBase64(bytes));
  expect(bundle?.map((bytes) => encodeBase64(bytes))).toEqual(entries);
  const other = serve(serving, log, "tile/0/000.p/99");
  await expect(other).rejects.toMatchObject({ code: "invalid-tile" });
  await expect(proveIndex(serving, log, { index: 99n })).resolves.toContain("\nindex 99\n");
});

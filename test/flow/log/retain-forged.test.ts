/** Retention of a log whose database somebody writes to with the service's own password. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { retain } from "../../../src/flow/log/retain.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { CHAIN_START, Chain, sealerOf } from "../chain.ts";
import { archived, archiveFolder } from "../folder.ts";

const MINUTE = 60_000;

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

/** Sealed every four minutes, twelve times, its entries written when they were sealed. */
async function grown(number: number, step = 1) {
  const chain = new Chain(number);
  const root = await archiveFolder();
  const sealer = sealerOf(db.writer, root);
  for (let i = 0; i < 12; i += 1) {
    sealer.now = CHAIN_START + i * 4 * MINUTE;
    await chain.growTo(db.writer, (i + 1) * step, i * 4 * MINUTE);
    await seal({ ...sealer, log: chain.log });
  }
  sealer.now = CHAIN_START + 200 * MINUTE;
  return { root, sealer, log: chain.log };
}

/** Until nothing is left, or something is said. */
async function retained({ sealer, log }: Awaited<ReturnType<typeof grown>>): Promise<unknown> {
  try {
    while (await retain({ ...sealer, log }));
    return undefined;
  } catch (error) {
    return error;
  }
}

async function sizesIn(root: string): Promise<number[]> {
  const paths = [...(await archived(root)).keys()];
  const sizes = paths.flatMap((path) => /\/checkpoint\/(\d+)$/.exec(path)?.[1] ?? []);
  return sizes.map(Number).sort((a, b) => a - b);
}

/** Rows at these sizes, of the same time as the genuine one of `as`. */
const forge = (log: string, as: number, sizes: readonly number[], note = "x") => db.writer`
  insert into checkpoints (log, size, root, note, sealed_at)
  select log, forged, root, ${note}, sealed_at
  from checkpoints, unnest(${db.writer.array([...sizes])}::bigint[]) as forged
  where log = ${log} and size = ${as}`;

const KEPT = [3, 5, 8, 10, 12].map((size) => 10 * size);

test("a forged row of any size makes nothing go that is kept, and is said", async () => {
  for (const [number, [as, sizes]] of [
    [120, [900_000]],
    [120, [121, 122, 900_000]],
    [30, [31]],
    [80, [81, 85, 89]],
    [100, [1, 101, 900_000]],
  ].entries() as ArrayIterator<[number, [number, number[]]]>) {
    const log = await grown(100 + number, 10);
    await forge(log.log, as, sizes);
    expect(String(await retained(log))).toContain("not signed by the log");
    expect(await sizesIn(log.root)).toEqual(KEPT);
  }
});

test("under so many forged rows that none is genuine nothing goes at all", async () => {
  const log = await grown(110, 10);
  const before = await archived(log.root);
  await forge(
    log.log,
    120,
    Array.from({ length: 40 }, (_, i) => 1_000 + i),
  );
  expect(String(await retained(log))).toContain("the archive holds none");
  expect(await archived(log.root)).toEqual(before);
});

test("a genuine note in a row of another size, or of another log, stands for nothing", async () => {
  const log = await grown(111, 10);
  const other = await grown(112, 10);
  const [row] = await db.writer<{ note: string }[]>`
    select note from checkpoints where log = ${other.log} and size = 120`;
  await forge(log.log, 80, [85], row?.note);
  expect(await retained(log)).toBeInstanceOf(Error);
  expect(await sizesIn(log.root)).toEqual(KEPT);
});

test("a row that says another time than its entries makes nothing go", async () => {
  const log = await grown(113, 10);
  await db.superuser.begin(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`alter table checkpoints disable trigger checkpoints_append_only`;
    await tx`update checkpoints set sealed_at = ${new Date(CHAIN_START)} where log = ${log.log}`;
    await tx`alter table checkpoints enable always trigger checkpoints_append_only`;
  });
  expect(await retained(log)).toBeUndefined();
  expect(await sizesIn(log.root)).toEqual(KEPT);
});

test("tables that say that more was sealed than was make no partial tile go that has no full one", async () => {
  const log = await grown(114, 30);
  await db.writer`
    insert into retentions (log, checkpoints_to, tiles_to) values (${log.log}, 5000000, 256)`;
  await db.writer`update seals set size = 5000000 where log = ${log.log}`;
  const before = await archived(log.root);
  await retained(log);
  const gone = [...before.keys()].filter((path) => path.includes(".p/104"));
  expect(gone).not.toEqual([]);
  const after = await archived(log.root);
  for (const path of gone) expect(after.has(path), path).toBe(true);
});

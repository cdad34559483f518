/** A sealer that dies, or whose bucket fails, at any request: what the next one makes of it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { seal } from "../../../src/flow/log/seal.ts";
import { openS3Archive } from "../../../src/store/archive-s3.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import type { Fault } from "../../s3.ts";
import { PATIENCE, s3Place } from "../../store/archives.ts";
import { Chain, checkpointed, sealerOf } from "../chain.ts";
import { expectFiles } from "../folder.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

const BEFORE = 3;
const SIZE = 300;

type Halfway = Awaited<ReturnType<typeof halfSealed>>;

/** A log of 300 entries, sealed to the third; each has a number of its own. */
async function halfSealed(number: number) {
  const chain = new Chain(number);
  const place = await s3Place({ pageSize: 1_000 });
  await chain.growTo(db.writer, BEFORE);
  const archive = await place.open();
  await seal({ ...sealerOf(db.writer, archive), log: chain.log });
  await chain.growTo(db.writer, SIZE);
  return { chain, place, archive };
}

/** Seals with one attempt for each request, of which `fault` says what becomes of it. */
async function sealFaulty(
  { chain, place }: Halfway,
  fault: (number: number) => Fault | undefined,
): Promise<{ outcome: unknown; tripped: boolean }> {
  const url = place.server.url.replace("?", "/some/prefix?");
  const hasty = await openS3Archive(url, { ...PATIENCE, attempts: 1 });
  const first = place.server.asked.length;
  let tripped = false;
  place.server.fault = ({ number }) => {
    const found = fault(number - first + 1);
    tripped ||= found !== undefined;
    return found;
  };
  const sealer = sealerOf(db.writer, hasty);
  const outcome = await seal({ ...sealer, log: chain.log }).catch((error: unknown) => error);
  place.server.fault = () => undefined;
  return { outcome, tripped };
}

async function expectWhole({ chain, place }: Halfway): Promise<void> {
  await seal({ ...sealerOf(db.writer, await place.open()), log: chain.log });
  expectFiles(await place.files(), chain, [BEFORE, SIZE]);
  expect(await checkpointed(db.reader, chain.log)).toEqual([BigInt(BEFORE), BigInt(SIZE)]);
}

test.each<[string, Fault]>([
  ["before the bucket has done it", 503],
  ["before its answer", "lost"],
])(
  "killed at any request, %s, the next seal leaves what one seal would have",
  async (_, fault) => {
    let killed = 0;
    for (let n = 1; killed === n - 1; n += 1) {
      const log = await halfSealed((fault === 503 ? 1_000 : 2_000) + n);
      const { tripped } = await sealFaulty(log, (number) => {
        if (number < n) return undefined;
        return number === n ? fault : 503;
      });
      if (tripped) killed += 1;
      await expectWhole(log);
    }
    expect(killed).toBeGreaterThan(8);
  },
  120_000,
);

test("when any one request fails, the seal says so or is whole, and so is the next one", async () => {
  let failed = 0;
  for (let n = 1; failed === n - 1; n += 1) {
    const log = await halfSealed(3_000 + n);
    const { outcome, tripped } = await sealFaulty(log, (number) =>
      number === n ? 503 : undefined,
    );
    if (tripped) failed += 1;
    const sealed = await checkpointed(db.reader, log.chain.log);
    if (sealed.includes(BigInt(SIZE))) expect(outcome).toMatchObject({ size: BigInt(SIZE) });
    else expect(outcome).toMatchObject({ code: "archive-unavailable" });
    await expectWhole(log);
  }
  expect(failed).toBeGreaterThan(8);
});

test("a bucket that fails every third request is got over within one seal", async () => {
  const log = await halfSealed(4_000);
  log.place.server.fault = ({ number }) => (number % 3 === 0 ? 503 : undefined);
  const sealer = sealerOf(db.writer, log.archive);
  expect(await seal({ ...sealer, log: log.chain.log })).toMatchObject({ size: BigInt(SIZE) });
  log.place.server.fault = () => undefined;
  await expectWhole(log);
});

/** Sealers of one log over databases that differ: whatever they do at once, one truth is signed. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseCheckpoint } from "../../../src/core/checkpoint.ts";
import { type Sealer, seal } from "../../../src/flow/log/seal.ts";
import type { Archive } from "../../../src/store/archive.ts";
import { naiveRoot } from "../../core/merkle.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { PLACES, type Place } from "../../store/archives.ts";
import { Chain, sealerOf } from "../chain.ts";

/** The database, and what is promoted in its place when it fails over without its tail. */
let db: FreshDatabase;
let other: FreshDatabase;
beforeAll(async () => {
  [db, other] = await Promise.all([freshDatabase(), freshDatabase()]);
});
afterAll(() => Promise.all([db.drop(), other.drop()]));

const BEFORE = 20;
const behind = { code: "log-behind" };

/** Every note that was ever signed, as the archive has been given it. */
interface Witnessed {
  sealer: Sealer;
  signed: string[];
}

/** A process on this database; it stops before what `stops` says yes to, until it is let go. */
async function sealing(
  at: FreshDatabase,
  place: Place,
  stops: (what: "put" | "claim" | "checkpoint", done: boolean) => boolean = () => false,
): Promise<Witnessed & { stopped: Promise<void>; letGo: () => void }> {
  const archive = await place.open();
  const signed: string[] = [];
  let letGo = (): void => undefined;
  let arrived = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const stopped = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const pass = async (what: "put" | "claim" | "checkpoint", done: boolean): Promise<void> => {
    if (!stops(what, done)) return;
    arrived();
    await gate;
  };
  const stalling: Archive = {
    ...archive,
    put: async (files) => {
      await pass("put", false);
      await archive.put(files);
      await pass("put", true);
    },
    create: async (path, bytes) => {
      const what = path.includes("/claim/") ? "claim" : "checkpoint";
      if (what === "checkpoint") signed.push(Buffer.from(bytes).toString());
      await pass(what, false);
      const outcome = await archive.create(path, bytes);
      await pass(what, true);
      return outcome;
    },
  };
  return { sealer: sealerOf(at.writer, stalling), signed, stopped, letGo };
}

/** One log in both databases, sealed at 20 in both; from there on they may differ. */
async function sealedInBoth(place: Place, number: number): Promise<{ ours: Chain; theirs: Chain }> {
  const ours = new Chain(number);
  const theirs = new Chain(number, BEFORE);
  for (const [at, chain] of [
    [db, ours],
    [other, theirs],
  ] as const) {
    await chain.growTo(at.writer, BEFORE);
    await seal({ ...sealerOf(at.writer, await place.open()), log: chain.log });
  }
  return { ours, theirs };
}

/** All signed notes are prefixes of one of the chains. */
function expectOneTruth(notes: readonly string[], chains: readonly Chain[]): void {
  const trees = notes.map((note) => parseCheckpoint(note.slice(0, note.lastIndexOf("\n\n") + 1)));
  const fits = chains.filter((chain) =>
    trees.every(
      (tree) =>
        tree !== undefined &&
        Buffer.compare(naiveRoot(chain.leaves.slice(0, Number(tree.size))), tree.root) === 0,
    ),
  );
  expect(fits.length).toBeGreaterThan(0);
}

describe.each(PLACES)("over an archive %s", (name, make) => {
  const base = name === "in a bucket" ? 5_000 : 4_000;

  test.each([
    ["before its tiles", "put", false],
    ["after its tiles", "put", true],
    ["after its claim", "claim", true],
    ["after it signed", "checkpoint", false],
  ] as const)(
    "a sealer that stalls %s, while its database fails over without its tail, signs no second truth",
    async (_, what, done) => {
      const place = await make();
      const number = base + ["put", "claim", "checkpoint"].indexOf(what) * 2 + Number(done);
      const { ours, theirs } = await sealedInBoth(place, number);
      await ours.growTo(db.writer, 31);
      const stale = await sealing(db, place, (...at) => at[0] === what && at[1] === done);
      const first = seal({ ...stale.sealer, log: ours.log }).catch((error: unknown) => error);
      await stale.stopped;

      await theirs.growTo(other.writer, 42);
      const promoted = await sealing(other, place);
      const second = await seal({ ...promoted.sealer, log: theirs.log }).catch(
        (error: unknown) => error,
      );
      stale.letGo();
      const outcomes = [await first, second];
      const failed = outcomes.filter((outcome) => outcome instanceof Error);
      expect(failed).toHaveLength(1);
      expect(failed[0]).toMatchObject(behind);
      expectOneTruth([...stale.signed, ...promoted.signed], [ours, theirs]);
    },
  );

  test("sealers at once, over one database and over two, never sign two truths", async () => {
    const place = await make();
    for (const round of [1, 2, 3]) {
      const { ours, theirs } = await sealedInBoth(place, base + 100 + round);
      await ours.growTo(db.writer, 20 + 3 * round);
      await theirs.growTo(other.writer, 20 + 5 * round);
      const sealers = await Promise.all(
        [db, db, other, other].map(async (at) => await sealing(at, place)),
      );
      const outcomes = await Promise.allSettled(
        sealers.map(({ sealer }) => seal({ ...sealer, log: ours.log })),
      );
      for (const outcome of outcomes) {
        if (outcome.status === "rejected") expect(outcome.reason).toMatchObject(behind);
      }
      const signed = sealers.flatMap((sealer) => sealer.signed);
      expect(signed.length).toBeGreaterThan(0);
      expectOneTruth(signed, [ours, theirs]);
    }
  });
});

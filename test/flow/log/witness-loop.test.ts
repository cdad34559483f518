import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { sealDirty } from "../../../src/flow/log/seal-loop.ts";
import { type SubmissionLag, witnessLoop } from "../../../src/flow/log/witness-loop.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { Chain, failOn, sealerOf } from "../chain.ts";
import { archiveFolder } from "../folder.ts";
import { TestWitness } from "../witness.ts";
import { cosignedBy } from "../witnessed.ts";

let db: FreshDatabase;
beforeEach(async () => {
  db = await freshDatabase();
});
afterEach(() => db.drop());

const INTERVAL_MS = 20;
/** Between two looks at a test's own witnesses. */
const OFTEN = { interval: 5, timeout: 50_000 };

async function openWitness(name: string, seed: number): Promise<TestWitness> {
  const witness = await new TestWitness(name, seed).listen();
  onTestFinished(() => witness.close());
  return witness;
}

interface Observed {
  cosigned: number;
  refused: string[];
  /** Of the last round: log, or "" for all, to what was said of it. */
  failing: Map<string, unknown>;
  lag: SubmissionLag | undefined;
}

/** Logs that grow together, and processes that submit them; one clock for all. */
class Logs {
  readonly chains: Chain[];
  readonly #sealer: ReturnType<typeof sealerOf>;
  #size = 0;

  constructor(count: number, root: string) {
    this.chains = Array.from({ length: count }, (_, i) => new Chain(i + 1));
    this.#sealer = sealerOf(db.writer, root);
  }

  static async open(count: number): Promise<Logs> {
    const logs = new Logs(count, await archiveFolder());
    await logs.grow();
    return logs;
  }

  get size(): bigint {
    return BigInt(this.#size);
  }

  async grow(): Promise<void> {
    this.#size += 3;
    for (const chain of this.chains) await chain.growTo(db.writer, this.#size);
    await sealDirty(this.#sealer, failOn);
  }

  pass(ms = INTERVAL_MS): void {
    this.#sealer.now += ms;
  }

  /** A process that runs until the test is over, or until it is stopped. */
  submit(witnesses: readonly TestWitness[], timeoutMs = 5_000) {
    const observed = new Map<string, Observed>();
    const of = (name: string): Observed => {
      const found = observed.get(name) ?? {
        cosigned: 0,
        refused: [],
        failing: new Map(),
        lag: undefined,
      };
      observed.set(name, found);
      return found;
    };
    const failing = new Map<string, Map<string, unknown>>();
    const abort = new AbortController();
    const done = witnessLoop({
      ...this.#sealer,
      ...{ witnesses, timeoutMs, signal: abort.signal, intervalMs: INTERVAL_MS },
      observer: {
        cosigned: (name) => {
          of(name).cosigned += 1;
        },
        refused: (name, reason) => of(name).refused.push(reason),
        failed: (name, error, log = "") => {
          failing.set(name, new Map(failing.get(name)).set(log, error));
        },
        roundEnded: (name, lag) => {
          Object.assign(of(name), { failing: failing.get(name) ?? new Map(), lag });
          failing.delete(name);
        },
      },
    });
    const stop = async (): Promise<void> => {
      abort.abort();
      await done;
    };
    onTestFinished(stop);
    return { of, stop };
  }

  /** How many of the logs this witness has cosigned at their newest checkpoint, as it says itself. */
  cosignedBy(witness: TestWitness): number {
    return [...witness.last.values()].filter(({ size }) => size === this.size).length;
  }
}

test("every log is brought before every witness, and again after the interval when it has grown", async () => {
  const logs = await Logs.open(66);
  const witnesses = [await openWitness("ada", 61), await openWitness("bob", 62)];
  const { of } = logs.submit(witnesses);
  for (const witness of witnesses) {
    await expect.poll(() => of(witness.name).cosigned, OFTEN).toBe(66);
    await expect.poll(() => of(witness.name).lag, OFTEN).toEqual({ logs: 0, ms: 0 });
  }
  await logs.grow();
  logs.pass(INTERVAL_MS - 1);
  await expect.poll(() => of("ada").lag?.logs, OFTEN).toBe(66);
  expect(of("ada").cosigned).toBe(66);
  logs.pass(1);
  for (const witness of witnesses) {
    await expect.poll(() => of(witness.name).cosigned, OFTEN).toBe(132);
    expect(logs.cosignedBy(witness)).toBe(66);
    expect(of(witness.name).refused).toEqual([]);
  }
});

test("of several processes, one submits a log: no witness is asked twice for the same", async () => {
  const logs = await Logs.open(40);
  const witness = await openWitness("ada", 61);
  const processes = [1, 2, 3].map(() => logs.submit([witness]));
  const cosigned = () => processes.reduce((sum, { of }) => sum + of("ada").cosigned, 0);
  await expect.poll(cosigned, OFTEN).toBe(40);
  await logs.grow();
  logs.pass();
  await expect.poll(cosigned, OFTEN).toBe(80);
  expect(witness.asked.length).toBe(80);
});

test("a witness that never answers delays neither another witness nor a seal", async () => {
  const logs = await Logs.open(8);
  const [silent, prompt] = [await openWitness("ada", 61), await openWitness("bob", 62)];
  silent.deviate = () => undefined;
  const { of } = logs.submit([silent, prompt], 600_000);
  for (const round of [1, 2, 3]) {
    await expect.poll(() => of("bob").cosigned, OFTEN).toBe(8 * round);
    await logs.grow();
    logs.pass();
  }
  expect(silent.asked.length).toBe(4);
  expect(of("ada").cosigned).toBe(0);
});

test("one log that a witness refuses is said, tried again slowly, and keeps no other waiting", async () => {
  const logs = await Logs.open(5);
  const witness = await openWitness("ada", 61);
  const { log = "" } = logs.chains[2] ?? {};
  witness.deviate = (honest, { checkpoint }) =>
    checkpoint.includes(log) ? { status: 403, body: "" } : honest;
  const { of } = logs.submit([witness]);
  await expect.poll(() => [...of("ada").failing.keys()], OFTEN).toEqual([log]);
  expect(of("ada").failing.get(log)).toMatchObject({ reason: "403" });
  for (const _ of Array(3)) {
    const before = of("ada").cosigned;
    await logs.grow();
    logs.pass();
    await expect.poll(() => of("ada").cosigned, OFTEN).toBe(before + 4);
  }
  expect(of("ada").refused).toEqual(["403"]);
  // It stays said while nobody has tried again, and is over when it is.
  expect([...of("ada").failing.keys()]).toEqual([log]);
  witness.deviate = (honest) => honest;
  logs.pass(20 * INTERVAL_MS);
  await expect.poll(() => logs.cosignedBy(witness), OFTEN).toBe(5);
  await expect.poll(() => of("ada").failing.size, OFTEN).toBe(0);
});

test("a witness that is away is left alone for as long as it asks, and then gets every log", async () => {
  const logs = await Logs.open(30);
  const witness = await openWitness("ada", 61);
  witness.deviate = () => ({ status: 503, body: "", headers: { "retry-after": "1" } });
  const before = performance.now();
  const { of } = logs.submit([witness]);
  await expect.poll(() => of("ada").failing.get(""), OFTEN).toMatchObject({ reason: "503" });
  const asked = witness.asked.length;
  expect(asked).toBeLessThanOrEqual(4);
  witness.deviate = (honest) => honest;
  logs.pass();
  await expect.poll(() => of("ada").cosigned, OFTEN).toBe(30);
  // From before it was asked at all: how late its answer was noticed makes no second shorter.
  expect(performance.now() - before).toBeGreaterThan(950);
  expect(witness.asked.length).toBe(asked + 30);
  await expect.poll(() => of("ada").failing.size, OFTEN).toBe(0);
});

test("a log that a witness stumbles over every time does not keep the others from it", async () => {
  const logs = await Logs.open(12);
  const witness = await openWitness("ada", 61);
  const { log = "" } = logs.chains[0] ?? {};
  witness.deviate = (honest, { checkpoint }) =>
    checkpoint.includes(log) ? { status: 500, body: "" } : honest;
  const { of } = logs.submit([witness]);
  await expect.poll(() => of("ada").cosigned, OFTEN).toBe(11);
});

test("told to stop, it stops at once, and what was claimed is not lost", async () => {
  const logs = await Logs.open(6);
  const witness = await openWitness("ada", 61);
  witness.deviate = () => undefined;
  const first = logs.submit([witness], 600_000);
  await expect.poll(() => witness.asked.length, OFTEN).toBe(4);
  await first.stop();
  witness.deviate = (honest) => honest;
  logs.pass();
  logs.submit([witness]);
  await expect.poll(() => logs.cosignedBy(witness), OFTEN).toBe(6);
  for (const { log } of logs.chains) {
    await expect.poll(() => cosignedBy(db.reader, log, witness), OFTEN).toEqual([3n]);
  }
});

test("it goes on when the database was away", async () => {
  const logs = await Logs.open(2);
  const witness = await openWitness("ada", 61);
  await db.owner`alter table submissions rename to submissions_elsewhere`;
  const { of } = logs.submit([witness]);
  await expect.poll(() => of("ada").failing.get(""), OFTEN).toBeInstanceOf(Error);
  expect(of("ada").lag).toBeUndefined();
  await db.owner`alter table submissions_elsewhere rename to submissions`;
  await expect.poll(() => of("ada").cosigned, OFTEN).toBe(2);
});

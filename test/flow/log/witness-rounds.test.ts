/** What is asked of witnesses whose quorum decides what is published. */
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { openAnchors } from "../../../src/flow/log/anchor.ts";
import { openPublished } from "../../../src/flow/log/published.ts";
import { submit } from "../../../src/flow/log/submit.ts";
import { claimSubmissions } from "../../../src/store/submissions.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { policyOf, TestWitness } from "../witness.ts";
import { cosignedBy, sealedLog } from "../witnessed.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

async function openWitness(name: string, seed: number): Promise<TestWitness> {
  const witness = await new TestWitness(name, seed).listen();
  onTestFinished(() => witness.close());
  return witness;
}

const ROUND_MS = 1_000;

/** A log of its own that two witnesses must sign, as one process sees it and another. */
async function quorumOfTwo(number: number) {
  const [ada, bob] = [await openWitness("ada", 61), await openWitness("bob", 62)];
  const sealed = await sealedLog(db.writer, number, [2]);
  const policy = policyOf([ada, bob], 2);
  const submitting = Object.assign(sealed.submitting, { policy, roundMs: ROUND_MS });
  const published = openPublished({ ...submitting, sql: db.reader });
  const shown = async () => (await published.latest(sealed.log))?.size;
  const ask = (witness: TestWitness) => submit(submitting, witness, sealed.log);
  /** Whether there is anything to ask this witness for. */
  const isWanted = async ({ vkey }: TestWitness): Promise<boolean> => {
    const claim = { keyId: vkey.id, until: 0, limit: 100, byRounds: true, now: submitting.now };
    return (await claimSubmissions(db.writer, claim)).includes(sealed.log);
  };
  return { ...sealed, submitting, ada, bob, ask, shown, isWanted };
}

test("witnesses of any pace are asked for the same checkpoint, so that a quorum is reached under traffic", async () => {
  const { ada, bob, ask, growTo, shown, log } = await quorumOfTwo(1);
  let size = 2;
  for (let round = 0; round < 4; round += 1) {
    const asked = BigInt(size);
    expect(await ask(ada)).toBe("cosigned");
    for (let i = 0; i < 3; i += 1) await growTo(++size);
    expect(await ask(ada)).toBe("current");
    expect(await ask(bob)).toBe("cosigned");
    expect(await shown()).toBe(asked);
  }
  const sizes = await cosignedBy(db.reader, log, ada);
  expect(await cosignedBy(db.reader, log, bob)).toEqual(sizes);
});

test("who has signed what is asked for is left alone until the quorum is reached", async () => {
  const { ada, bob, ask, growTo, isWanted } = await quorumOfTwo(2);
  await ask(ada);
  await growTo(5);
  expect([await isWanted(ada), await isWanted(bob)]).toEqual([false, true]);
  await ask(bob);
  expect([await isWanted(ada), await isWanted(bob)]).toEqual([true, true]);
});

test("a quorum that is not reached in time is tried anew with what is sealed by then", async () => {
  const { ada, bob, ask, growTo, shown, submitting } = await quorumOfTwo(3);
  await ask(ada);
  await growTo(6);
  submitting.now += ROUND_MS - 1;
  expect(await ask(ada)).toBe("current");
  submitting.now += 1;
  expect(await ask(ada)).toBe("cosigned");
  expect(await ask(bob)).toBe("cosigned");
  expect(await shown()).toBe(6n);
});

test("a witness that is past what is asked for is asked for the newest, and so are the others then", async () => {
  const { ada, bob, ask, growTo, shown, log } = await quorumOfTwo(4);
  await ask(ada);
  await growTo(7);
  const { size, root } = await ahead(log);
  bob.last.set(`chain.test/${log}`, { size, root });
  await growTo(9);
  expect(await ask(bob)).toBe("cosigned");
  expect(await ask(ada)).toBe("cosigned");
  expect(await shown()).toBe(9n);
});

/** The newest checkpoint, as a witness would have it whose answer was lost. */
async function ahead(log: string): Promise<{ size: bigint; root: Uint8Array }> {
  const [row] = await db.reader<[{ size: bigint; root: Uint8Array }]>`
    select size, root from checkpoints where log = ${log} order by size desc limit 1`;
  return row;
}

test("how long readers have not been shown what is sealed is said", async () => {
  const fresh = await freshDatabase();
  onTestFinished(() => fresh.drop());
  const [ada, bob] = [await openWitness("ada", 61), await openWitness("bob", 62)];
  const { log, submitting, growTo } = await sealedLog(fresh.writer, 5, [2]);
  const policy = policyOf([ada, bob], 2);
  const look = openAnchors({ ...submitting, policy });
  const unpublished = async () => (await look()).unpublished;
  submitting.now += 400;
  expect(await unpublished()).toEqual({ logs: 1, lag_ms: 400 });
  await submit({ ...submitting, policy }, ada, log);
  expect(await look()).toMatchObject({ logs: 0, unpublished: { logs: 1, lag_ms: 400 } });
  await submit({ ...submitting, policy }, bob, log);
  expect(await unpublished()).toEqual({ logs: 0, lag_ms: 0 });
  await growTo(3);
  submitting.now += 50;
  expect(await unpublished()).toEqual({ logs: 1, lag_ms: 50 });
  const none = openAnchors({ ...submitting, policy: policyOf([ada, bob], 0) });
  expect(await none()).toMatchObject({ unpublished: { logs: 0, lag_ms: 0 } });
});

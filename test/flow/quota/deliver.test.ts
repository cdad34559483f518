import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { RETRY_MS } from "../../../src/flow/quota/deliver.ts";
import { connect } from "../../../src/store/connect.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { Courier, fill, SECRET, stateOf } from "./outbox.ts";
import { answering, type Behaviour, Receiver, verified } from "./receiver.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

const SECOND = 1_000;
const DAY = 86_400_000;
// Long ago, and days pass: a clock that is ahead of the database's is set right by it.
const clock = { time: Date.UTC(2026, 1, 20, 12), now: () => clock.time };
let receiver: Receiver;

beforeEach(async () => {
  await db.superuser`truncate notifications, webhook_receivers`;
  receiver = await new Receiver().listen();
  onTestFinished(() => receiver.close());
});

type More = Partial<ConstructorParameters<typeof Courier>[0]>;

function courier(more: More = {}): Courier {
  const webhook = { url: receiver.url, secrets: [SECRET] };
  const started = new Courier({ sql: db.writer, clock, webhook, ...more });
  onTestFinished(() => started.stop());
  return started;
}

const settled = (id: string, state = "delivered"): Promise<boolean> =>
  vi.waitUntil(async () => (await stateOf(db.reader, id)) === state, { timeout: 20_000 });

/** So many tries were made, and what comes of the last is written. */
async function tried(of: Courier, count = 1): Promise<void> {
  await vi.waitUntil(() => of.outcomes.length === count, { timeout: 20_000 });
  await rounds(of, 2);
}

/** Whole rounds in which something could have been sent. */
async function rounds(of: Courier, count = 5): Promise<void> {
  const from = of.rounds;
  await vi.waitUntil(() => of.rounds >= from + count, { timeout: 20_000 });
}

test("what is sent is a signed webhook as the standard's own library takes it", async () => {
  const [id = ""] = await fill(db.writer, 1, clock.time);
  courier();
  await settled(id);
  const [received] = receiver.received;
  if (received === undefined) throw new Error("nothing came");
  expect(received.id).toBe(id);
  expect(received.timestamp).toBe(Math.floor(clock.time / SECOND));
  expect(received.headers["content-type"]).toBe("application/json");
  expect(received.headers["webhook-signature"]).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/);
  expect(verified(SECRET, received)).toEqual({ namespace: 1, i: 0 });
  const other = { ...received, body: received.body.replace("1", "2") };
  expect(() => verified(SECRET, other)).toThrow("No matching signature");
  expect(() => verified(new Uint8Array(32), received)).toThrow("No matching signature");
});

test("while a secret is replaced, whoever knows the former or the current one can verify", async () => {
  const current = new Uint8Array(24).fill(9);
  const [id = ""] = await fill(db.writer, 1, clock.time);
  courier({ webhook: { url: receiver.url, secrets: [current, SECRET] } });
  await settled(id);
  const [received] = receiver.received;
  if (received === undefined) throw new Error("nothing came");
  for (const secret of [current, SECRET]) expect(verified(secret, received)).toBeDefined();
});

test("a receiver that fails gets the same id and bytes again, each time later, for days, and then no more", async () => {
  receiver.behaviours = [answering(500)];
  const began = clock.time;
  const [id = ""] = await fill(db.writer, 1, began);
  const sending = courier();
  for (const [n, ms] of RETRY_MS.entries()) {
    await tried(sending, n + 1);
    clock.time += ms - 1;
    await rounds(sending);
    expect(receiver.received).toHaveLength(n + 1);
    clock.time += 1 + ms / 4;
  }
  await settled(id, "given_up");
  expect(clock.time - began).toBeGreaterThan(3 * DAY);
  expect(clock.time - began).toBeLessThan(4 * DAY);
  clock.time += 2 * DAY;
  await rounds(sending);
  expect(receiver.received).toHaveLength(RETRY_MS.length + 1);
  expect(new Set(receiver.ids)).toEqual(new Set([id]));
  expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
  for (const received of receiver.received) expect(verified(SECRET, received)).toBeDefined();
  const failed = RETRY_MS.map(() => "failed");
  expect(sending.outcomes).toEqual([...failed, "given_up"]);
  expect(sending.reasons).toEqual(["500"]);
});

test("of a namespace nothing overtakes what comes before it; other namespaces do not wait for it", async () => {
  receiver.behaviours = [
    (response, { body }) => {
      const isFirst = body === JSON.stringify({ namespace: 1, i: 0 });
      response.writeHead(isFirst && receiver.received.length < 3 ? 500 : 204).end();
    },
  ];
  const [first = "", second = "", third = ""] = await fill(db.writer, 1, clock.time, 3);
  const [other = ""] = await fill(db.writer, 2, clock.time);
  const sending = courier();
  await settled(other);
  await rounds(sending);
  expect(new Set(receiver.ids)).toEqual(new Set([first, other]));
  clock.time += 10 * SECOND;
  await settled(third);
  expect(receiver.ids.filter((id) => id !== other)).toEqual([first, first, second, third]);
});

test("a process whose clock is a year ahead signs with the right time, and puts nothing off for a year", async () => {
  receiver.behaviours = [answering(500)];
  const [id = ""] = await fill(db.writer, 1, Date.now());
  await tried(courier({ clock: { now: () => Date.now() + 365 * DAY } }));
  const [{ timestamp } = { timestamp: 0 }] = receiver.received;
  expect(Math.abs(timestamp * SECOND - Date.now())).toBeLessThan(60 * SECOND);
  const [row] = await db.reader<{ soon: boolean }[]>`
    select due_at < clock_timestamp() + interval '1 minute' as soon
    from notifications
    where id = ${id}`;
  expect(row?.soon).toBe(true);
});

test("a receiver that hangs is left alone for a while, all of it, and then sent the same again", async () => {
  const hanging: Behaviour = () => undefined;
  receiver.behaviours = [hanging, answering(204)];
  const [id = ""] = await fill(db.writer, 1, clock.time);
  const sending = courier({ timeoutMs: SECOND });
  await tried(sending);
  const [other = ""] = await fill(db.writer, 2, clock.time);
  await rounds(sending);
  expect(receiver.ids).toEqual([id]);
  expect(sending.reasons).toEqual(["timeout"]);
  // Whoever sends it again waits for as long as usual: a busy machine may take a second for an answer.
  await sending.stop();
  courier();
  clock.time += 10 * SECOND;
  await settled(id);
  await settled(other);
  expect(receiver.ids.filter((each) => each === id)).toHaveLength(2);
});

test("a receiver that is slow and answers in time is sent it once", async () => {
  const slow: Behaviour = (response) => setTimeout(() => response.writeHead(200).end(), 200);
  receiver.behaviours = [slow];
  const [id = ""] = await fill(db.writer, 1, clock.time);
  const [one, two] = [courier(), courier()];
  await settled(id);
  await Promise.all([rounds(one), rounds(two)]);
  expect(receiver.ids).toEqual([id]);
});

test("an answer that has no end is not read: its status is all that is waited for", async () => {
  let closed = false;
  receiver.behaviours = [
    (response) => {
      response.writeHead(200).write("x".repeat(65_536));
      const more = setInterval(() => response.write("x".repeat(65_536)), 5);
      response.on("close", () => {
        closed = true;
        clearInterval(more);
      });
    },
  ];
  const [id = ""] = await fill(db.writer, 1, clock.time);
  courier();
  await settled(id);
  await vi.waitUntil(() => closed, { timeout: 20_000 });
});

test("a redirect is followed nowhere, and counts as a failure", async () => {
  const elsewhere = await new Receiver().listen();
  onTestFinished(() => elsewhere.close());
  receiver.behaviours = [answering(307, { location: elsewhere.url }), answering(200)];
  const [id = ""] = await fill(db.writer, 1, clock.time);
  const sending = courier();
  await tried(sending);
  expect(sending.reasons).toEqual(["redirect"]);
  clock.time += 10 * SECOND;
  await settled(id);
  expect(elsewhere.received).toEqual([]);
});

test.each([
  ["seconds", () => "600"],
  ["a date", () => new Date(clock.time + 600 * SECOND).toUTCString()],
])("Retry-After in %s is waited for, also where our own patience ends before", async (_, asked) => {
  receiver.behaviours = [answering(429, { "retry-after": asked() }), answering(204)];
  const [id = ""] = await fill(db.writer, 1, clock.time);
  const sending = courier();
  await tried(sending);
  await fill(db.writer, 2, clock.time);
  clock.time += 599 * SECOND;
  await rounds(sending);
  expect(receiver.ids).toEqual([id]);
  clock.time += 200 * SECOND;
  await settled(id);
});

test("Retry-After for ever is an hour, and one of yesterday is none", async () => {
  const yesterday = new Date(clock.time - DAY).toUTCString();
  const asked = [answering(503, { "retry-after": "999999999" })];
  receiver.behaviours = [...asked, answering(500, { "retry-after": yesterday }), answering(204)];
  const [id = ""] = await fill(db.writer, 1, clock.time);
  const sending = courier();
  await tried(sending);
  clock.time += 3_600 * SECOND * 1.25;
  await tried(sending, 2);
  clock.time += (RETRY_MS[1] ?? 0) * 1.25;
  await settled(id);
});

test("what waits is counted over all processes, with the age of the oldest", async () => {
  receiver.behaviours = [answering(500)];
  await fill(db.writer, 1, clock.time - 90 * SECOND, 2);
  await fill(db.writer, 2, clock.time - 30 * SECOND);
  const sending = courier();
  await vi.waitUntil(() => sending.backlog !== undefined, { timeout: 20_000 });
  expect(sending.backlog).toEqual({ notifications: 3, ms: 90 * SECOND });
});

test("after a 410 nothing is sent there any more by any process, and another receiver gets what waits", async () => {
  receiver.behaviours = [answering(410), answering(204)];
  const [id = ""] = await fill(db.writer, 1, clock.time);
  const sending = courier();
  await tried(sending);
  await fill(db.writer, 2, clock.time);
  const later = courier();
  clock.time += 5 * DAY;
  await Promise.all([rounds(sending), rounds(later)]);
  expect(receiver.ids).toEqual([id]);
  expect([sending.reasons, later.reasons]).toEqual([["410"], ["410"]]);
  expect(await stateOf(db.reader, id)).toBe("pending");
  const url = `${receiver.url}?again`;
  courier({ webhook: { url, secrets: [SECRET] } });
  await settled(id);
});

test("a receiver that nobody listens at is left alone longer each time, and gets all when it is back", async () => {
  await receiver.close();
  const ids: string[] = [];
  for (let n = 1; n <= 20; n += 1) ids.push(...(await fill(db.writer, n, clock.time)));
  const sending = courier();
  await vi.waitUntil(() => sending.outcomes.length > 0, { timeout: 20_000 });
  for (const restMs of [5, 10, 20].map((seconds) => seconds * SECOND)) {
    await rounds(sending);
    const tries = sending.outcomes.length;
    clock.time += restMs - 1;
    await rounds(sending);
    expect(sending.outcomes).toHaveLength(tries);
    clock.time += 1 + restMs / 4;
    await vi.waitUntil(() => sending.outcomes.length > tries, { timeout: 20_000 });
  }
  expect(sending.reasons).toEqual(["unreachable"]);
  await sending.stop();
  const back = await new Receiver().listen();
  onTestFinished(() => back.close());
  courier({ webhook: { url: back.url, secrets: [SECRET] } });
  clock.time += 10 * 60 * SECOND;
  for (const id of ids) await settled(id);
  expect(back.ids.toSorted()).toEqual(ids.toSorted());
});

test("two processes on one database send each of two hundred once", async () => {
  const ids: string[] = [];
  for (let n = 1; n <= 50; n += 1) ids.push(...(await fill(db.writer, n, clock.time, 4)));
  const pools = [connect(db.urls.writer, { max: 2 }), connect(db.urls.writer, { max: 2 })];
  const both = pools.map((sql) => courier({ sql }));
  for (const id of ids) await settled(id);
  for (const each of both) await each.stop();
  for (const pool of pools) await pool.end();
  expect(receiver.ids.toSorted()).toEqual(ids.toSorted());
  for (const each of both) expect(each.outcomes.length).toBeGreaterThan(0);
  // In the order of each namespace.
  for (let n = 0; n < 50; n += 1) {
    const own = ids.slice(4 * n, 4 * n + 4);
    expect(receiver.ids.filter((id) => own.includes(id))).toEqual(own);
  }
});

test("what a process was sending when it was stopped, the next one sends at once", async () => {
  const hanging: Behaviour = () => undefined;
  receiver.behaviours = [hanging, answering(204)];
  const [id = ""] = await fill(db.writer, 1, clock.time);
  const stopping = courier();
  await vi.waitUntil(() => receiver.received.length === 1, { timeout: 20_000 });
  await stopping.stop();
  courier();
  await settled(id);
  expect(receiver.ids).toEqual([id, id]);
});

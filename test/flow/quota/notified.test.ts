/** What is kept of notifications, for how long, and how it is shown. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { showNotified } from "../../../src/flow/quota/notified.ts";
import { GIVEN_UP_MS, KEPT_MS } from "../../../src/flow/quota/notify.ts";
import { expireNotifications } from "../../../src/store/notifications.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { fill, stateOf } from "./outbox.ts";
import { MINUTE_MS, START as NOW, outboxOf, QuotaLog, tell } from "./told.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

test("notifications are shown in their order, a page at a time, each once, and never of another namespace", async () => {
  const log = await new QuotaLog(1).create(db.owner);
  log.limit(2, 1);
  log.use(2, MINUTE_MS);
  const look = async (): Promise<void> => {
    await log.load(db.owner);
    await tell(db.writer, log.log, log.now);
  };
  for (let raise = 1; raise <= 51; raise += 1) {
    log.now += 1;
    log.limit(1, 10 * raise);
    await look();
    log.use(1, 10n * MINUTE_MS);
    await look();
  }
  const kept = await outboxOf(db.reader, log.log);
  const own = kept.filter(({ namespace }) => namespace === "1");
  const shown: string[] = [];
  for (let after: string | undefined = "0"; after !== undefined; ) {
    const search = { log: log.log, namespace: "1", after: BigInt(after) };
    const { notifications, next } = await showNotified({ sql: db.reader }, search);
    shown.push(...notifications.map(({ id }) => id));
    expect(notifications).toHaveLength(next === undefined ? 1 : 100);
    after = next;
  }
  expect(shown).toEqual(own.map(({ id }) => id));
});

test("what nobody took for a week is given up, and after 35 days nothing is left of it", async () => {
  const [old = "", taken = ""] = await fill(db.writer, 1, NOW - GIVEN_UP_MS, 2);
  const [young = ""] = await fill(db.writer, 2, NOW - GIVEN_UP_MS + 1);
  await db.writer`
    update notifications set state = 'delivered', settled_at = at where id = ${taken}`;
  const ages = { givenUpMs: GIVEN_UP_MS, keptMs: KEPT_MS };
  await expireNotifications(db.writer, { now: NOW, ...ages });
  const states = (): Promise<unknown[]> =>
    Promise.all([old, taken, young].map((id) => stateOf(db.reader, id)));
  expect(await states()).toEqual(["given_up", "delivered", "pending"]);
  const gone = NOW - GIVEN_UP_MS + KEPT_MS;
  await expireNotifications(db.writer, { now: gone - 1, ...ages });
  expect(await states()).toEqual(["given_up", "delivered", "given_up"]);
  await expireNotifications(db.writer, { now: gone, ...ages });
  expect(await states()).toEqual([undefined, undefined, "given_up"]);
});

/** The reconciler over a real Redis Cluster: namespaces lie on several masters, and one of those loses all. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { NamespaceKey } from "../../../src/core/quota/live.ts";
import { type Asked, askNamespace } from "../../../src/flow/quota/ask.ts";
import { offerAgain } from "../../../src/flow/quota/offer-again.ts";
import { compareAll } from "../../../src/flow/quota/reconcile.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { type RedisCluster, startCluster } from "../../redis.ts";
import { ask, COMPUTE_MS, found, openProcess, type QuotaProcess, run } from "./reconciling.ts";
import { QuotaLog, START } from "./told.ts";

const NAMESPACES = Array.from({ length: 12 }, (_, i) => String(i + 1));

const WAIT = { timeout: 15_000 };

let db: FreshDatabase;
let cluster: RedisCluster;
let process: QuotaProcess;
let other: QuotaProcess;
let time = START + 86_400_000;
const log = new QuotaLog(1);

beforeAll(async () => {
  [db, cluster] = await Promise.all([freshDatabase(), startCluster()]);
  for (const namespace of NAMESPACES) log.limit(Number(namespace), 100);
  await log.load(db.owner);
  const place = { kind: "cluster", urls: cluster.urls } as const;
  const at = { sql: db.writer, clock: { now: () => time }, place, frail: true } as const;
  [process, other] = [await openProcess(at), await openProcess(at)];
});
afterAll(async () => {
  await Promise.all([process.close(), other.close()]);
  await Promise.all([cluster.stop(), db.drop()]);
});

/** As who decides asks: who looks at all jobs waits longer, and by then the master is replaced. */
function glimpse(by: QuotaProcess, key: NamespaceKey): Promise<Asked> {
  return askNamespace(by, key, [], { maxAgeMs: 0 });
}

test("one master that is flushed loses its namespaces and no other's, and a round brings them back", async () => {
  for (const namespace of NAMESPACES) {
    await ask(process, { log: log.log, namespace }, run(process, `5${namespace}`, 60_000));
  }
  time += 10_000;
  expect(await found(process)).toEqual([]);
  const [master] = cluster.masters;
  const lost = Number(await master?.say("DBSIZE"));
  expect(lost).toBeGreaterThan(0);
  expect(lost).toBeLessThan(NAMESPACES.length);
  await master?.say("FLUSHALL");
  expect((await found(process)).map((line) => line.split(" ")[0])).toEqual(
    Array(lost).fill("lost"),
  );
  for (const namespace of NAMESPACES) {
    const { live, source } = await ask(process, { log: log.log, namespace });
    expect([live, source]).toEqual([60_000n * COMPUTE_MS, "redis"]);
  }
  expect(await found(process)).toEqual([]);
});

test("after a master was replaced every process says that all is up, and rounds compare all, whoever asked what", async () => {
  const keys = NAMESPACES.map((namespace) => ({ log: log.log, namespace }));
  const asked = async (by: QuotaProcess): Promise<Set<string>> =>
    new Set(await Promise.all(keys.map(async (key) => (await glimpse(by, key)).source)));
  const [master] = cluster.masters;
  await master?.kill("SIGSTOP");
  for (const by of [process, other]) {
    expect(await asked(by)).toEqual(new Set(["redis", "process"]));
    expect(by.live.state()).toBe("away");
  }
  // What the other masters hold is compared meanwhile.
  const some = await compareAll(process, () => undefined);
  expect(some).toBeGreaterThan(0);
  expect(some).toBeLessThan(NAMESPACES.length);
  await cluster.failover(0);
  await expect.poll(() => compareAll(process, () => undefined), WAIT).toBe(NAMESPACES.length);
  expect(process.live.state()).toBe("up");
  // It asks nothing and wins no round.
  await offerAgain(other, () => undefined);
  await expect.poll(() => other.live.state(), WAIT).toBe("up");
});

test("a master that stood still for a moment is up again for a process that asks nothing of it", async () => {
  const quiet = await openProcess({
    ...{ sql: db.writer, clock: { now: () => time }, frail: true },
    place: { kind: "cluster", urls: cluster.urls },
  });
  const [master] = cluster.masters;
  await master?.kill("SIGSTOP");
  await Promise.all(NAMESPACES.map((namespace) => glimpse(quiet, { log: log.log, namespace })));
  expect(quiet.live.state()).toBe("away");
  await master?.kill("SIGCONT");
  await expect
    .poll(async () => {
      await offerAgain(quiet, () => undefined);
      return quiet.live.state();
    }, WAIT)
    .toBe("up");
  await quiet.close();
});

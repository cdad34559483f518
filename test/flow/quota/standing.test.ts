/** Who answers while a Redis is stopped, killed, full or failed over. */
import { afterEach, expect, test } from "vitest";
import type { Ask, Command, Done, NamespaceKey } from "../../../src/core/quota/live.ts";
import { type Live, openLive } from "../../../src/flow/quota/standing.ts";
import { openLiveProcess } from "../../../src/store/live-process.ts";
import { openLiveRedis, type RedisPlace } from "../../../src/store/live-redis.ts";
import { command, figures, goOn, NOW, neverRan, run, start } from "../../core/quota/live.ts";
import { type RedisServer, startCluster, startRedis } from "../../redis.ts";

const LOG = "0123456789abcdef0123456789abcdef";
const KEY = { log: LOG, namespace: "1" };
/** A machine that does a lot beside answers late, and that is not what is tested. */
const PATIENT = { answerMsMax: 20_000 };

const ends: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

interface Opened {
  live: Live;
  failures: unknown[];
  /** The clock's. */
  time: { now: number };
}

async function open(
  place: RedisPlace,
  options: { answerMsMax?: number } = PATIENT,
): Promise<Opened> {
  const failures: unknown[] = [];
  const time = { now: NOW };
  const live = openLive({
    redis: await openLiveRedis(place, options),
    process: openLiveProcess(),
    clock: { now: () => time.now },
    failed: (error) => failures.push(error),
  });
  ends.push(() => live.close());
  return { live, failures, time };
}

async function startSingle(): Promise<RedisServer> {
  const server = await startRedis();
  ends.push(() => server.stop());
  return server;
}

async function ask(
  live: Live,
  asks: readonly Ask[],
  options: { key?: NamespaceKey; given?: Partial<Command> } = {},
): Promise<{ source: string; answer: Done }> {
  const { answer, source } = await live.run(options.key ?? KEY, command(asks, options.given));
  if (answer.kind !== "done") throw new Error(`answered: ${answer.kind}`);
  return { answer, source };
}

test("without a Redis the process' copy is the truth", async () => {
  const live = openLive({
    process: openLiveProcess(),
    clock: { now: () => NOW },
    failed: () => undefined,
  });
  expect(live.state()).toBe("none");
  await ask(live, [run("1", 5n), start("2", 7n)]);
  expect(await ask(live, [goOn("1")])).toMatchObject({
    source: "process",
    answer: { live: 5n, reserved: 7n },
  });
});

test("a Redis that is stopped is waited for once, and the process answers within its time", async () => {
  const server = await startSingle();
  const place = { kind: "single", url: server.url } as const;
  const { live, failures, time } = await open(place, { answerMsMax: 1_000 });
  await ask(live, [run("1", 5n)]);
  await server.kill("SIGSTOP");
  // It would never be heard again: that there is an answer at all is what the limit does.
  expect(await ask(live, [run("1", 8n)])).toMatchObject({
    source: "process",
    answer: { live: 8n },
  });
  expect(failures).toHaveLength(1);
  expect(live.state()).toBe("away");
  await Promise.all(Array.from({ length: 50 }, () => ask(live, [goOn("1")])));
  expect(failures).toHaveLength(1);
  // Its time is over: one call tries it, and those beside do not.
  time.now += 1_000;
  const probes = await Promise.all(Array.from({ length: 50 }, () => ask(live, [goOn("1")])));
  expect(probes.every(({ source }) => source === "process")).toBe(true);
  expect(failures).toHaveLength(2);
  await server.kill("SIGCONT");
});

test("a Redis that was killed and comes back empty is told again by the next heartbeat", async () => {
  const server = await startSingle();
  const { live, time } = await open({ kind: "single", url: server.url });
  expect(await ask(live, [run("1", 5n), start("2", 7n)])).toMatchObject({ source: "redis" });
  await server.kill("SIGKILL");
  // What was heard here is known here; what was granted is not, as others grant too.
  expect(await ask(live, [goOn("1")])).toMatchObject({
    source: "process",
    answer: { live: 5n, reserved: 0n },
  });
  expect(live.state()).toBe("away");
  await server.restart();
  await expect
    .poll(
      async () => {
        time.now += 1_000;
        return (await ask(live, [run("1", 9n)])).source;
      },
      { timeout: 20_000 },
    )
    .toBe("redis");
  expect(live.state()).toBe("up");
  expect(await ask(live, [goOn("1")])).toMatchObject({ source: "redis", answer: { live: 9n } });
});

test("a Redis that was never there keeps nobody from starting", async () => {
  const server = await startSingle();
  await server.kill("SIGKILL");
  const { live, time } = await open({ kind: "single", url: server.url });
  expect(live.state()).toBe("away");
  expect(await ask(live, [start("1")])).toMatchObject({ source: "process" });
  await server.restart();
  await expect
    .poll(
      async () => {
        time.now += 1_000;
        return (await ask(live, [goOn("1")])).source;
      },
      { timeout: 20_000 },
    )
    .toBe("redis");
});

test("a namespace that Redis takes too long for is left alone, and the others go on by Redis", async () => {
  const server = await startSingle();
  const { live, time } = await open({ kind: "single", url: server.url }, { answerMsMax: 1_000 });
  const other = { log: LOG, namespace: "2" };
  await ask(live, [run("1", 5n)]);
  await server.kill("SIGSTOP");
  expect(await ask(live, [run("1", 8n)])).toMatchObject({
    source: "process",
    answer: { live: 8n },
  });
  await server.kill("SIGCONT");
  await expect.poll(() => live.state(), { timeout: 20_000 }).toBe("up");
  expect(await ask(live, [start("3")], { key: other })).toMatchObject({ source: "redis" });
  expect(await ask(live, [goOn("1")])).toMatchObject({ source: "process" });
  time.now += 1_000;
  expect(await ask(live, [run("1", 9n)])).toMatchObject({ source: "redis", answer: { live: 9n } });
});

test("who looks at all of a namespace waits longer for it than who decides", async () => {
  const server = await startSingle();
  const { live, failures } = await open({ kind: "single", url: server.url }, { answerMsMax: 250 });
  await server.say("CLIENT", "PAUSE", "500", "WRITE");
  expect(await ask(live, [], { given: { inspect: true } })).toMatchObject({ source: "redis" });
  expect(failures).toEqual([]);
});

test("a Redis whose memory is full says so, and the process answers", async () => {
  const server = await startSingle();
  const { live, failures } = await open({ kind: "single", url: server.url });
  await ask(live, [run("1", 5n)]);
  await server.say("CONFIG", "SET", "maxmemory", "1");
  expect(await ask(live, [run("1", 8n)])).toMatchObject({
    source: "process",
    answer: { live: 8n },
  });
  expect(String(failures)).toContain("OOM");
});

test("where the copy cannot tell which of its jobs have ended, the caller is asked, and both know then", async () => {
  const server = await startSingle();
  const { live } = await open({ kind: "single", url: server.url });
  await ask(live, [run("1", 5n), run("2", 6n)]);
  // Decisions alone move on what Redis keeps.
  const later = figures({ asOf: 20n, touched: 15n });
  await ask(live, [goOn("2")], { given: { figures: later, since: 10n, settled: ["1"] } });
  const last = figures({ asOf: 30n, touched: 15n });
  const beat = command([run("3", 1n)], { figures: last, since: 20n });
  expect(await live.run(KEY, beat)).toEqual({
    answer: { kind: "gap", asOf: 10n, jobs: ["1", "2"] },
    source: "process",
  });
  const again = await live.run(KEY, { ...beat, looked: ["1", "2"], settled: ["1"] });
  expect(again).toMatchObject({ source: "redis", answer: { kind: "done", live: 7n } });
  await server.kill("SIGKILL");
  expect(await ask(live, [goOn("2")], { given: { figures: last, since: 20n } })).toMatchObject({
    source: "process",
    answer: { live: 7n },
  });
});

test("a job that another process was told never ran is counted by nobody when Redis goes away", async () => {
  const server = await startSingle();
  const place = { kind: "single", url: server.url } as const;
  const [one, other] = [await open(place), await open(place)];
  await ask(one.live, [run("1", 5n), run("2", 7n)]);
  await ask(other.live, [neverRan("1")]);
  // It comes again, as from a host that was lost, or is offered again.
  expect(await ask(one.live, [run("1", 5n)])).toMatchObject({ source: "redis" });
  await server.kill("SIGKILL");
  expect(await ask(one.live, [goOn("2")])).toMatchObject({
    source: "process",
    answer: { live: 7n },
  });
  // Who really runs is heard again.
  expect(await ask(one.live, [run("1", 6n)])).toMatchObject({ answer: { live: 13n } });
});

test("all namespaces are walked, those of the copy too when Redis is away", async () => {
  const server = await startSingle();
  const { live, failures } = await open({ kind: "single", url: server.url });
  const other = { log: LOG, namespace: "2" };
  await ask(live, [run("1", 5n)]);
  await ask(live, [start("2")], { key: other });
  const walked = async (): Promise<Set<string>> => {
    const found = new Set<string>();
    for await (const page of live.walk()) for (const { namespace } of page) found.add(namespace);
    return found;
  };
  expect(await walked()).toEqual(new Set(["1", "2"]));
  await server.kill("SIGKILL");
  expect(await walked()).toEqual(new Set(["1"]));
  expect(failures).toHaveLength(1);
});

test("while a Cluster's master is replaced, what the other masters hold is answered by Redis, and then all is", async () => {
  const cluster = await startCluster();
  ends.push(() => cluster.stop());
  const { live, time } = await open(
    { kind: "cluster", urls: cluster.urls },
    { answerMsMax: 2_000 },
  );
  const keys = Array.from({ length: 30 }, (_, i) => ({ log: LOG, namespace: String(i) }));
  const beat = async (elapsed: bigint): Promise<{ source: string; answer: Done }[]> =>
    await Promise.all(keys.map((key) => ask(live, [run("1", elapsed)], { key })));
  expect((await beat(5n)).every(({ source }) => source === "redis")).toBe(true);
  const failing = cluster.failover(0);
  const sources = new Set<string>();
  let elapsed = 5n;
  const isOver = failing.then(() => true);
  for (let over: boolean | undefined; over !== true; ) {
    elapsed += 1n;
    const answers = await beat(elapsed);
    expect(answers.map(({ answer }) => answer.live)).toEqual(keys.map(() => elapsed));
    sources.add(new Set(answers.map(({ source }) => source)).size === 2 ? "both" : "one");
    over = await Promise.race([isOver, new Promise<boolean>((turn) => setImmediate(turn, false))]);
  }
  expect(sources).toContain("both");
  await expect
    .poll(
      async () => {
        time.now += 1_000;
        elapsed += 1n;
        const answers = await beat(elapsed);
        return answers.every(({ source, answer }) => source === "redis" && answer.live === elapsed);
      },
      { timeout: 10_000 },
    )
    .toBe(true);
});

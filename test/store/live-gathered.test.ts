/** Namespaces that are asked in one turn: one write to a single server, and nothing of one in another. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { NamespaceKey } from "../../src/core/quota/live.ts";
import { openLiveRedis, type RedisStore } from "../../src/store/live-redis.ts";
import { command, figures, goOn, run, start } from "../core/quota/live.ts";
import { type RedisServer, startRedis } from "../redis.ts";

const COUNT = 300;

let server: RedisServer;
let redis: RedisStore;

beforeAll(async () => {
  server = await startRedis({ settings: { "maxmemory-policy": "noeviction" } });
  redis = await openLiveRedis({ kind: "single", url: server.url }, { answerMsMax: 20_000 });
});

afterAll(async () => {
  await redis.close();
  await server.stop();
});

function keyOf(namespace: number): NamespaceKey {
  return { log: "0123456789abcdef0123456789abcdef", namespace: String(namespace) };
}

/** Calls of the script, and reads from connections. */
async function counted(): Promise<{ calls: number; reads: number }> {
  const all = String(await server.say("INFO", "everything"));
  const number = (pattern: RegExp): number => Number(pattern.exec(all)?.[1] ?? 0);
  return {
    calls: number(/cmdstat_evalsha:calls=(\d+)/),
    reads: number(/total_reads_processed:(\d+)/),
  };
}

test("many namespaces are as many commands in few writes, each has its own answer, and one that is asked twice is asked in order", async () => {
  const keys = Array.from({ length: COUNT }, (_, i) => keyOf(i));
  await Promise.all(keys.map((key) => redis.run(key, command([goOn("1")]))));
  const before = await counted();
  const answers = await Promise.all([
    ...keys.map((key, i) => redis.run(key, command([run("1", BigInt(i))]))),
    ...keys.map((key, i) => redis.run(key, command([run("2", 1_000n), goOn(String(i))]))),
  ]);
  expect(answers).toMatchObject([
    ...keys.map((_, i) => ({ live: BigInt(i), results: { length: 1 } })),
    ...keys.map((_, i) => ({ live: BigInt(i) + 1_000n, results: { length: 2 } })),
  ]);
  const after = await counted();
  expect(after.calls - before.calls).toBe(2 * COUNT);
  expect(after.reads - before.reads).toBeLessThan(COUNT / 10);
});

test("all of a turn that a server answers without knowing the script is answered all the same", async () => {
  await server.say("SCRIPT", "FLUSH");
  const keys = Array.from({ length: COUNT }, (_, i) => keyOf(i));
  const answers = await Promise.all(keys.map((key) => redis.run(key, command([goOn("2")]))));
  expect(answers).toMatchObject(keys.map(() => ({ results: [{ known: true }] })));
});

test("the text of figures goes out once, and comes back only where it is another one", async () => {
  const key = keyOf(COUNT + 1);
  const text = JSON.stringify({ shown: "x".repeat(50_000) });
  const own = { figures: figures({ text }) };
  const bytes = async (): Promise<{ in: number; out: number }> => {
    const stats = String(await server.say("INFO", "stats"));
    const number = (pattern: RegExp): number => Number(pattern.exec(stats)?.[1]);
    return {
      in: number(/total_net_input_bytes:(\d+)/),
      out: number(/total_net_output_bytes:(\d+)/),
    };
  };
  const before = await bytes();
  await redis.run(key, command([goOn("1")], own));
  const first = await bytes();
  expect(first.in - before.in).toBeGreaterThan(text.length);
  // Newer figures of the same text, and older ones: of those the kept asOf is said.
  for (const asOf of [11n, 12n, 10n]) {
    const given = { figures: figures({ text, asOf }), since: 10n };
    const answer = await redis.run(key, command([goOn("1")], given));
    expect(answer).toMatchObject({
      figures: { ...given.figures, asOf: asOf === 10n ? 12n : asOf },
    });
  }
  const last = await bytes();
  expect(last.in - first.in).toBeLessThan(text.length);
  expect(last.out - first.out).toBeLessThan(text.length);
  const other = await redis.run(key, command([goOn("1")], { figures: figures({ text: "{}" }) }));
  expect(other).toMatchObject({ figures: { asOf: 12n, text } });
});

test("what is asked all at once is answered in its order, also of those whose figures have to come along", async () => {
  const asked = Array.from({ length: COUNT }, (_, i) => i + 2 * COUNT);
  const call = (i: number) => ({ key: keyOf(i), command: command([goOn(String(i))]) });
  const known = asked.filter((i) => i % 3 === 0);
  await Promise.all(known.map((i) => redis.run(keyOf(i), command([run(String(i), BigInt(i))]))));
  const answers = await redis.runAll(asked.map(call));
  expect(answers).toMatchObject(
    asked.map((i) => ({ kind: "done", live: i % 3 === 0 ? BigInt(i) : 0n })),
  );
});

test("what is refused of one namespace is answered of the others", async () => {
  await redis.run(keyOf(1), command([run("1", 5n)]));
  await server.say("CONFIG", "SET", "maxmemory", "1");
  const [refused, answered] = await Promise.allSettled([
    redis.run(keyOf(COUNT), command([start("3")])),
    redis.run(keyOf(1), command([goOn("1")])),
  ]);
  expect(refused).toMatchObject({ status: "rejected", reason: { message: /OOM/ } });
  expect(answered).toMatchObject({ status: "fulfilled", value: { kind: "done" } });
  const [error, done] = await redis.runAll([
    { key: keyOf(COUNT), command: command([start("3")]) },
    { key: keyOf(1), command: command([goOn("1")]) },
  ]);
  expect(error).toBeInstanceOf(Error);
  expect(done).toMatchObject({ kind: "done" });
});

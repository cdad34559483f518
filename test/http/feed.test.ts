import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import type { Service } from "../../src/command/service.ts";
import type { FeedEvent } from "../../src/core/feed/event.ts";
import { WAITERS_OF_ONE_MAX } from "../../src/flow/feed/seal-watch.ts";
import { minutebook } from "../command/terminal.ts";
import { compiled } from "../compile.ts";
import { reported } from "../flow/door.ts";
import {
  ask,
  beside,
  everybody,
  type House,
  newLog,
  openHouse,
  sealedSize,
  tokenOf,
} from "./house.ts";

const CONSUMER = compiled(new URL("./feed-consumer.ts", import.meta.url));

let house: House;
/** Another process, which shows credits. */
let other: Service;
let log: string;
let portal: string;
let built = 0;

beforeAll(async () => {
  house = await openHouse();
  other = await beside(house, undefined, { creditMinutes: 100 });
  ({ log } = await newLog(house, "fed", 1));
  portal = await tokenOf(["portal"], { logs: [log] });
  await build(20);
});
afterAll(() => house.close());

/** So many builds of a minute. @returns the size, all of it sealed */
async function build(count: number): Promise<string> {
  const reports = Array.from({ length: count }, () => {
    built += 1;
    return reported(1, log, { counter: String(built), job: { id: String(built) } });
  });
  const { status } = await ask(house, "POST /v1/reports", { json: { reports } });
  expect(status).toBe(200);
  return await sealedSize(house, log);
}

async function page(search = "", at: Pick<Service, "url"> = house) {
  const { json } = await ask(at, `GET /v1/feed?log=${log}${search}`, { token: portal });
  return json as unknown as { as_of: string; next_cursor: string; events: FeedEvent[] };
}

const jobsOf = (events: readonly FeedEvent[]): string[] =>
  events.flatMap(({ data }) =>
    "metadata" in data && "job_id" in data.metadata ? [data.metadata.job_id] : [],
  );
const jobs = (): string[] => Array.from({ length: built }, (_, i) => String(i + 1));

test("every process tells the same events, and credits beside them where it was told what one is", async () => {
  const [first, second] = [await page(), await page("", other)];
  expect(jobsOf(first.events)).toEqual(jobs());
  const bare = second.events.map((event) => {
    if (event.type !== "com.gitlab.billable_usage") throw new Error("not usage");
    const { credits, ...metadata } = event.data.metadata;
    expect(credits).toBe("0.0100000000");
    return { ...event, data: { ...event.data, metadata } };
  });
  expect(bare).toEqual(first.events);
});

test("pages taken in turn from two processes are all events once and in order", async () => {
  const events: FeedEvent[] = [];
  let cursor = "0";
  for (let turn = 0; ; turn += 1) {
    const found = await page(`&limit=3&cursor=${cursor}`, turn % 2 === 0 ? house : other);
    events.push(...found.events);
    cursor = found.next_cursor;
    if (cursor === found.as_of) break;
  }
  expect(jobsOf(events)).toEqual(jobs());
});

test("whoever waits is answered as soon as a checkpoint brings something, and by another process too", async () => {
  const { next_cursor } = await page();
  const waiting = [house, other].map((at) => page(`&cursor=${next_cursor}&wait_s=30`, at));
  await build(1);
  for (const { events } of await Promise.all(waiting)) {
    expect(jobsOf(events)).toEqual([String(built)]);
  }
});

test("a stream is lines of events with a cursor behind each page, goes on with what comes, and ends when nothing does", async () => {
  const headers = { authorization: `Bearer ${portal}`, accept: "application/x-ndjson" };
  const stream = (waitS: number) =>
    fetch(`${house.url}/v1/feed?log=${log}&limit=7&wait_s=${waitS}`, { headers });
  const response = await stream(30);
  expect(response.headers.get("content-type")).toBe("application/x-ndjson");
  const growing = build(2);
  const going: FeedEvent[] = [];
  for await (const line of createInterface({ input: Readable.fromWeb(response.body as never) })) {
    const value = JSON.parse(line);
    if ("specversion" in value) going.push(value);
    if (going.length === jobs().length) break;
  }
  expect(jobsOf(going)).toEqual(jobs());
  await growing;
  const text = await (await stream(1)).text();
  const lines = Array.from(text.matchAll(/.+/g), ([line]) => JSON.parse(line));
  const cursors = lines.filter((line) => "next_cursor" in line);
  expect(cursors.length).toBeGreaterThan(3);
  expect(lines.at(-1)).toEqual(cursors.at(-1));
  expect(jobsOf(lines.filter((line) => "specversion" in line))).toEqual(jobs());
  const beyond = await fetch(`${house.url}/v1/feed?log=${log}&cursor=99999`, { headers });
  expect(beyond.status).toBe(404);
});

test("whoever goes away while the service waits for them is waited for no longer", async () => {
  const { next_cursor } = await page();
  const gone = new AbortController();
  const headers = { authorization: `Bearer ${portal}` };
  const asked = `${other.url}/v1/feed?log=${log}&cursor=${next_cursor}&wait_s=30`;
  const wait = () => fetch(asked, { headers, signal: gone.signal }).catch(() => "gone");
  // One too many: as soon as that is answered, all others wait.
  const waiting = Array.from({ length: WAITERS_OF_ONE_MAX + 1 }, wait);
  expect(await Promise.race(waiting)).toMatchObject({ status: 200 });
  gone.abort();
  await Promise.all(waiting);
  /** Whether there is a place to wait at. */
  const isFree = async (): Promise<boolean> => {
    const start = performance.now();
    await page(`&cursor=${next_cursor}&wait_s=1`, other);
    return performance.now() - start > 900;
  };
  await vi.waitUntil(isFree, { timeout: 10_000 });
});

test("who is barred while they read is told no more, and a principal has no more streams than their share", async () => {
  const token = await tokenOf(["portal", "auditor"], { logs: [log] });
  const headers = { authorization: `Bearer ${token}`, accept: "application/x-ndjson" };
  const asked = `${house.url}/v1/feed?log=${log}&wait_s=30`;
  const gone = new AbortController();
  const open = () => fetch(asked, { headers, signal: gone.signal });
  const streams = await Promise.all(Array.from({ length: 20 }, open));
  expect(streams.every(({ status }) => status === 200)).toBe(true);
  expect((await open()).status).toBe(503);
  const text = streams[0]?.text();
  const [row] = await house.database.superuser<{ id: string }[]>`
    select id from principals where roles = 'auditor,portal' limit 1`;
  const json = { log, reason: "left" };
  const bar = `POST /v1/principals/${row?.id}/bar`;
  expect((await ask(house, bar, { token: await everybody(), json })).status).toBe(201);
  const size = await build(1);
  expect((await text)?.includes(`"next_cursor":"${size}"`)).toBe(false);
  gone.abort();
  const { status } = await ask(house, `GET /v1/feed?log=${log}`, { token });
  expect(status).toBe(404);
});

test("a stream of which only the head is asked for gives its place back at once", async () => {
  const token = await tokenOf(["portal", "finance"], { logs: [log] });
  const headers = { authorization: `Bearer ${token}`, accept: "application/x-ndjson" };
  const asked = `${house.url}/v1/feed?log=${log}&wait_s=30`;
  for (let i = 0; i <= 20; i += 1) {
    const { headers: said, status } = await fetch(asked, { method: "HEAD", headers });
    expect([status, said.get("content-type")]).toEqual([200, "application/x-ndjson"]);
  }
});

test("a consumer that is killed anywhere and started again has every event once and in order", async () => {
  const folder = await mkdtemp(join(tmpdir(), "minutebook-feed-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const started = (at: Pick<Service, "url">, ...pages: string[]): ChildProcess => {
    const args = [CONSUMER, at.url, portal, log, folder, ...pages];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    onTestFinished(() => void child.kill("SIGKILL"));
    return child;
  };
  const killed: unknown[] = [];
  for (const pages of [1, 2, 0]) {
    const child = started(pages === 2 ? other : house, String(pages));
    child.stdout?.on("data", () => child.kill("SIGKILL"));
    const [, signal] = await once(child, "exit");
    killed.push(signal);
  }
  expect(killed).toEqual(["SIGKILL", "SIGKILL", "SIGKILL"]);
  const [status] = await once(started(other), "exit");
  expect([status, existsSync(join(folder, "kept.json"))]).toEqual([0, true]);
  const { events } = JSON.parse(readFileSync(join(folder, "kept.json"), "utf8"));
  expect(jobsOf(events)).toEqual(jobs());
});

test("what a consumer states is answered with what the log counts, blocks its month while it differs, and shows in the day's report", async () => {
  const up_to = (await page()).next_cursor;
  const month = { billing_month: "2026-11-01", events: String(built) };
  const ack = async (compute_ms: string, at: Pick<Service, "url"> = house) => {
    const json = { log, consumer: "portal", up_to, months: [{ ...month, compute_ms }] };
    return await ask(at, "POST /v1/feed/ack", { token: portal, json });
  };
  const token = await everybody();
  const missing = async (): Promise<string> => {
    const path = `GET /v1/months/${log}/2026-11-01`;
    const { preconditions } = (await ask(house, path, { token })).json;
    const found = (preconditions as Record<string, string>[]).find(({ code }) => code === "breaks");
    return found?.["missing"] ?? "";
  };
  const right = `${built * 60_000}.000000`;
  const wrong = await ack("60000.000000");
  expect([wrong.status, wrong.json["differing"]]).toEqual([201, ["2026-11-01"]]);
  expect(await missing()).toMatch(/^1 open/);
  const day = `GET /v1/logs/${log}/completeness?day=2026-11-20`;
  expect((await ask(house, day, { token })).json["acknowledged"]).toMatchObject([
    { consumer: "portal", differing: ["2026-11-01"], index: wrong.json["index"], up_to },
  ]);
  const { status, json } = await ack(right);
  expect([status, json["months"]]).toEqual([
    201,
    [{ ...month, compute_ms: right, counted_compute_ms: right, counted_events: month.events }],
  ]);
  expect(await missing()).toBe("");
  expect((await ack(right, other)).status).toBe(200);
  const finance = await tokenOf(["finance"], { logs: [log] });
  const refused = await ask(house, "POST /v1/feed/ack", { token: finance, json: {} });
  expect(refused.status).toBe(404);
});

test("minutebook feed prints the events from a cursor on, one on each line, and how to go on", async () => {
  const given = { MINUTEBOOK_SERVER: house.url, MINUTEBOOK_TOKEN: portal };
  await sealedSize(house, log);
  const { status, stderr, stdout } = await minutebook(["feed", "--log", log], given);
  const { events, next_cursor } = await page();
  const lines = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect([status, lines]).toEqual([0, events]);
  expect(stderr).toContain(`go on with --from ${next_cursor}`);
  const rest = await minutebook(["feed", "--log", log, "--from", next_cursor], given);
  expect([rest.status, rest.stdout]).toEqual([0, ""]);
  const wrong = await minutebook(["feed", "--log", log, "--from", "-1"], given);
  expect(wrong.stderr).toContain("Expected an index such as 1200.");
  const beyond = await minutebook(["feed", "--log", log, "--from", "99999"], given);
  expect(beyond.stderr).toContain("go on with --from 99999");
});

function following() {
  const main = compiled(new URL("../../src/main.ts", import.meta.url));
  const env = { ...process.env, MINUTEBOOK_SERVER: house.url, MINUTEBOOK_TOKEN: portal };
  const child = spawn(process.execPath, [main, "feed", "--log", log, "--follow"], { env });
  onTestFinished(() => void child.kill("SIGKILL"));
  const said: string[] = [];
  child.stderr.on("data", (chunk) => said.push(String(chunk)));
  return { child, said };
}

const SIGNALS = [["SIGINT", 130] as const, ["SIGTERM", 143] as const];
test.each(SIGNALS)("minutebook feed ended by %s says how to go on", async (signal, status) => {
  const { child, said } = following();
  let lines = 0;
  for await (const _ of createInterface({ input: child.stdout })) {
    lines += 1;
    if (lines === built) break;
  }
  // It has printed all that there is, and what it says is where it asked from last.
  child.kill(signal);
  expect(await once(child, "close")).toEqual([status, null]);
  const [, from] = /go on with --from ([0-9]+)/.exec(said.join("")) ?? [];
  expect((await page(`&cursor=${from}`)).events).toEqual([]);
});

test("minutebook feed whose reader has gone says how to go on: from what was not taken", async () => {
  const { child, said } = following();
  child.stdout.destroy();
  expect(await once(child, "close")).toEqual([0, null]);
  expect(said.join("")).toContain("go on with --from 0\n");
});

test("a service that stops ends what waits in it, and does not wait with it", async () => {
  const leaving = await beside(house);
  house.besides.splice(house.besides.indexOf(leaving), 1);
  const headers = { authorization: `Bearer ${portal}`, accept: "application/x-ndjson" };
  const asked = `${leaving.url}/v1/feed?log=${log}&limit=1000&wait_s=30`;
  const { next_cursor } = await page();
  // Its first page is there: from now on it waits for another one.
  const response = await fetch(asked, { headers });
  const start = performance.now();
  const [text] = await Promise.all([response.text(), leaving.stop()]);
  expect(performance.now() - start).toBeLessThan(20_000);
  const last = JSON.parse(text.trimEnd().split("\n").at(-1) ?? "");
  // A process that stops writes of its own.
  expect(last.next_cursor).toBe(last.as_of);
  expect(BigInt(last.next_cursor)).toBeGreaterThanOrEqual(BigInt(next_cursor));
});

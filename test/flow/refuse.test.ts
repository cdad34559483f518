/** What is no report: refusals, the lines and the register that account for them (BYTES §3). */
import { afterAll, beforeAll, expect, test } from "vitest";
import { TYP } from "../../src/core/report.ts";
import { report } from "../core/history.ts";
import {
  closeHouse,
  codes,
  type Door,
  digestOf,
  type House,
  newAgent,
  newLog,
  ofKind,
  openHouse,
  reported,
  sign,
} from "./door.ts";
import { linesOf, readBack } from "./replay.ts";

let house: House;
let door: Door;

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
});

afterAll(() => closeHouse(house));

test("a signed text that is no report is a line on the log where its counter can be read", async () => {
  const log = await newLog(door, "unfit");
  await newAgent(door, log, 1);
  const body = { ...report({ log }) };
  const found = await door.submit(
    sign(1, TYP.report, JSON.stringify({ ...body, counter: "2", job: { ...body.job, id: 7 } })),
    sign(1, TYP.report, ` {"counter":"1","log":"${log}"}`),
    sign(1, TYP.report, { ...body, counter: "3", usage: { ...body.usage, duration_ms: "-1" } }),
    sign(1, TYP.report, { ...body, counter: "4", surprise: "member" }),
    sign(1, TYP.report, { ...body, counter: "none" }),
    sign(1, TYP.report, "[]"),
    sign(1, TYP.attestation, { ...body, counter: "5" }),
  );
  expect(codes(found)).toEqual([
    "non-canonical",
    "non-canonical",
    "schema",
    "schema",
    "schema",
    "schema",
    "wrong-typ",
  ]);
  const expected = ["1 non-canonical ", "2 non-canonical ", "3 schema ", "4 schema "];
  expect(await linesOf(house, log)).toEqual(expected);
});

test("a report for a log where its key is not enrolled is noted where the key is", async () => {
  const home = await newLog(door, "home");
  const other = await newLog(door, "not home");
  await newAgent(door, home, 11);
  const found = await door.submit(reported(11, other), reported(11, other, { counter: "2" }));
  expect(codes(found)).toEqual(["wrong-log", "wrong-log"]);
  expect(await linesOf(house, home)).toEqual(["1 wrong-log ", "2 wrong-log "]);
  expect(ofKind(await readBack(house, other), "usage")).toEqual([]);
  // Its counters say nothing about those that the key uses at home.
  expect(codes(await door.submit(reported(11, home)))).toEqual(["accepted"]);
  expect(await linesOf(house, home)).toHaveLength(2);
  // Enrolled there too, the same bytes are a report like any other.
  await newAgent(door, other, 11);
  expect(codes(await door.submit(reported(11, other)))).toEqual(["accepted"]);
});

test("a counter used again for other bytes is judged as usual and noted, never a loss", async () => {
  const log = await newLog(door, "reused");
  await newAgent(door, log, 1);
  await door.submit(reported(1, log, { counter: "1", job: { id: "1" } }));
  const found = await door.submit(
    reported(1, log, { counter: "1", job: { id: "2" } }),
    reported(1, log, { counter: "1", job: { id: "1", pipeline_id: "99" } }),
    reported(1, log, { counter: "2", job: { id: "1" } }),
    sign(1, TYP.report, { counter: "1", log }),
  );
  expect(codes(found)).toEqual(["accepted", "conflict", "duplicate", "schema"]);
  const [second, conflict, duplicate] = found.results;
  expect(await linesOf(house, log)).toEqual([
    `1 counter-reused ${second?.index}`,
    `1 counter-reused ${conflict?.index}`,
    "1 schema ",
    "1 counter-reused ",
    `2 duplicate ${duplicate?.index}`,
  ]);
});

test("a duplicate that uses its counter again has one line", async () => {
  const log = await newLog(door, "reused duplicate");
  await newAgent(door, log, 1);
  const { results } = await door.submit(reported(1, log));
  const payload = { ...report({ log }), id: "2" };
  expect(codes(await door.submit(sign(1, TYP.report, payload)))).toEqual(["duplicate"]);
  expect(await linesOf(house, log)).toEqual([`1 counter-reused ${results[0]?.index}`]);
});

test("a batch with more lines of one key than an entry takes writes two entries", async () => {
  const log = await newLog(door, "many lines");
  await newAgent(door, log, 1);
  await door.submit(reported(1, log));
  const texts = Array.from({ length: 300 }, (_, i) =>
    reported(1, log, { counter: String(301 - i) }),
  );
  await door.submit(...texts);
  const found = ofKind(await readBack(house, log), "disposition").map(
    ({ body }) => body.lines.length,
  );
  expect(found).toEqual([256, 44]);
  const counters = (await linesOf(house, log)).map((line) => Number(line.split(" ")[0]));
  expect(counters).toEqual(Array.from({ length: 300 }, (_, i) => i + 2));
});

test("a signature re-encoded in any way is malformed and never a second entry (L33)", async () => {
  const log = await newLog(door, "re-encoded");
  await newAgent(door, log, 1);
  const jws = reported(1, log);
  const [header = "", payload = "", signature = ""] = jws.split(".");
  const bytes = Buffer.from(signature, "base64url");
  const last = signature.at(-1) ?? "";
  const sameBits = String.fromCharCode(last.charCodeAt(0) + 1);
  const variants = [
    `${header}.${payload}.${signature.slice(0, -1)}${sameBits}`,
    `${jws}==`,
    `${header}.${payload}.${signature.slice(0, 40)}\n${signature.slice(40)}`,
    `${header}.${payload}.${bytes.toString("base64").slice(0, 86)}+/`,
    ` ${jws}`,
    "",
    "a".repeat(5_000),
  ];
  const found = codes(await door.submit(jws, ...variants));
  expect(found).toEqual(["accepted", ...variants.map(() => "malformed")]);
  expect(ofKind(await readBack(house, log), "usage")).toHaveLength(1);
});

test("what proves nothing is not on the log, only digest and code are registered", async () => {
  const log = await newLog(door, "register");
  await newAgent(door, log, 1);
  const before = await readBack(house, log);
  const strange = reported(77, log);
  const forged = sign(1, TYP.report, { ...report({ log }) }).replace(/.{8}$/, "AAAAAAAA");
  const unread = sign(1, TYP.report, "{}");
  const found = await door.submit(strange, forged, "text", "text", unread);
  expect(codes(found)).toEqual([
    "unknown-key",
    "bad-signature",
    "malformed",
    "malformed",
    "schema",
  ]);
  expect(await readBack(house, log)).toEqual(before);
  await door.register.flush();
  const rows = await house.database.reader<{ digest: Uint8Array; code: string; times: bigint }[]>`
    select digest, code, times from refusals`;
  const registered = new Map(
    rows.map((row) => [Buffer.from(row.digest).toString("base64"), [row.code, row.times]]),
  );
  expect(registered.get(digestOf(strange))).toEqual(["unknown-key", 1n]);
  expect(registered.get(digestOf(forged))).toEqual(["bad-signature", 1n]);
  expect(registered.get(digestOf("text"))).toEqual(["malformed", 2n]);
  expect(registered.get(digestOf(unread))).toEqual(["schema", 1n]);
});

test("two logs in one request are refused before anything is written", async () => {
  const [a, b] = [await newLog(door, "mixed a"), await newLog(door, "mixed b")];
  await newAgent(door, a, 1);
  await newAgent(door, b, 1);
  const request = door.submit(reported(1, a), reported(1, b));
  await expect(request).rejects.toMatchObject({ code: "mixed-logs" });
  expect(ofKind(await readBack(house, a), "usage")).toEqual([]);
  // A text that nobody signed names no log, and cannot spoil the request of others.
  const forged = reported(1, b).replace(/.{8}$/, "AAAAAAAA");
  expect(codes(await door.submit(reported(1, a), forged))).toEqual(["accepted", "bad-signature"]);
});

test("more than five hundred reports in a request are too many", async () => {
  const request = door.submit(...new Array<string>(501).fill("x"));
  await expect(request).rejects.toMatchObject({ code: "too-many" });
});

test("a full house answers busy before anything is accepted, and takes the next when it has room", async () => {
  const small = house.open({ intake: { reports: 2 } });
  const log = await newLog(small, "busy");
  await newAgent(small, log, 1);
  const texts = [1, 2, 3].map((n) =>
    reported(1, log, { counter: String(n), job: { id: String(n) } }),
  );
  const [one = "", two = "", three = ""] = texts;
  const first = small.submit(one, two);
  await expect(small.submit(three)).rejects.toMatchObject({ code: "busy", status: 503 });
  expect(codes(await first)).toEqual(["accepted", "accepted"]);
  expect(ofKind(await readBack(house, log), "usage")).toHaveLength(2);
  expect(codes(await small.submit(three))).toEqual(["accepted"]);
});

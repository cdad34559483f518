import { once } from "node:events";
import { rename } from "node:fs/promises";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PROBLEMS } from "../../src/core/problem.ts";
import { TYP } from "../../src/core/report.ts";
import { kidOf, report } from "../core/history.ts";
import { digestOf, entriesOf, ofKind, reported, sign } from "../flow/door.ts";
import { ask, type House, newAgent, newLog, openHouse } from "./house.ts";

let house: House;
let log: string;
let token: string;

const UNRATED = "unrated";

beforeAll(async () => {
  house = await openHouse();
  ({ log, token } = await newLog(house, "reports", 1));
  await newAgent(house, log, 4, { uuid: UNRATED, machine_type: "on no card" });
});

afterAll(() => house.close());

const send = (jose: string) => ask(house, "POST /v1/reports", { jose });
const batch = (...reports: string[]) => ask(house, "POST /v1/reports", { json: { reports } });
const post = (body: string, type = "application/json") =>
  ask(house, "POST /v1/reports", { jose: body, headers: { "content-type": type } });

test("one report is answered by the status of its code, with the entry that stands", async () => {
  const first = reported(1, log, { counter: "10", job: { id: "10" } });
  const accepted = await send(first);
  expect(accepted.status).toBe(201);
  expect(accepted.headers.get("content-type")).toBe("application/json");
  expect(accepted.json).toMatchObject({
    log,
    code: "accepted",
    counter: "10",
    digest: digestOf(first),
  });

  const again = await send(first);
  expect(again.status).toBe(201);
  expect(again.text).toBe(accepted.text);

  const { index, leaf } = accepted.json;
  const duplicate = await send(reported(1, log, { counter: "11", job: { id: "10" } }));
  expect(duplicate.status).toBe(200);
  expect(duplicate.json).toMatchObject({ code: "duplicate", index, leaf });

  const usage = { duration_ms: "60001" };
  const conflict = await send(reported(1, log, { counter: "12", job: { id: "10" }, usage }));
  expect(conflict.status).toBe(409);
  expect(conflict.headers.get("content-type")).toBe("application/problem+json");
  expect(conflict.json).toMatchObject({ code: "conflict", counter: "12" });
});

const OTHER_LOG = "0".repeat(32);

/** What is to be answered to one report, by code. */
const SINGLE: Record<string, [status: number, jws: () => string]> = {
  "outside-enrolment": [202, () => reported(1, log, { counter: "20", uuid: "somebody's" })],
  future: [
    202,
    () => {
      const usage = { finished_at: "2026-11-20T12:05:00.001Z" };
      return reported(1, log, { counter: "21", job: { id: "21" }, usage });
    },
  ],
  "over-cap": [
    202,
    () => {
      const usage = { duration_ms: "2678400001" };
      return reported(1, log, { counter: "22", job: { id: "22" }, usage });
    },
  ],
  "no-rate": [202, () => reported(4, log, { counter: "1", uuid: UNRATED, job: { id: "23" } })],
  malformed: [400, () => "a.b.c"],
  "unknown-key": [401, () => reported(99, log, { counter: "1" })],
  "bad-signature": [
    401,
    () => {
      const [header, , signature] = reported(1, log, { counter: "24" }).split(".");
      const [, payload] = reported(1, log, { counter: "25" }).split(".");
      return [header, payload, signature].join(".");
    },
  ],
  "non-canonical": [422, () => sign(1, TYP.report, `${JSON.stringify(report({ log }))} `)],
  schema: [422, () => sign(1, TYP.report, { counter: "26", log, more: "x" })],
  "wrong-log": [422, () => reported(1, OTHER_LOG, { counter: "27" })],
  "wrong-typ": [422, () => sign(1, TYP.attestation, { ...report({ counter: "28", log }) })],
};

test.each(Object.keys(SINGLE))("a report that is %s says so by its status", async (code) => {
  const [status, jws] = SINGLE[code] ?? [0, () => ""];
  const answer = await send(jws());
  expect([answer.json["code"], answer.status]).toEqual([code, status]);
  const problem = Object.hasOwn(PROBLEMS, code);
  expect(answer.headers.get("content-type")).toBe(
    problem ? "application/problem+json" : "application/json",
  );
  if (problem) expect(answer.json["type"]).toMatch(new RegExp(`/${code}$`));
});

test("a report above its key's last trusted counter is held", async () => {
  await newAgent(house, log, 3, { uuid: "leaked" });
  const json = { log, last_trusted_counter: "1", reason: "leaked" };
  const revoke = await ask(house, `POST /v1/keys/${kidOf(3)}/revoke`, { token, json });
  expect(revoke.status).toBe(201);
  const held = await send(reported(3, log, { counter: "2", uuid: "leaked", job: { id: "30" } }));
  expect([held.status, held.json["code"]]).toEqual([202, "key-ended"]);
});

test("a bad one among five hundred has its own answer, and the others theirs", async () => {
  const texts = Array.from({ length: 500 }, (_, i) =>
    reported(1, log, { counter: `${1000 + i}`, job: { id: `${1000 + i}` } }),
  );
  texts[250] = "not a report";
  const answer = await batch(...texts);
  expect(answer.status).toBe(200);
  const results = answer.json["results"] as { code: string; digest: string }[];
  expect(results.map(({ digest }) => digest)).toEqual(texts.map(digestOf));
  expect(results.filter(({ code }) => code !== "accepted")).toEqual([
    { code: "malformed", digest: digestOf("not a report") },
  ]);
});

test("two logs in one request are refused whole", async () => {
  const answer = await batch(reported(1, log, { counter: "40" }), reported(1, OTHER_LOG));
  expect([answer.status, answer.json["code"]]).toEqual([400, "mixed-logs"]);
});

test.each([
  ["no JSON", "{"],
  ["nothing", ""],
  ["no object", "[]"],
  ["null", "null"],
  ["no reports", "{}"],
  ["an empty list", '{"reports":[]}'],
  ["what is no text", '{"reports":[1]}'],
  ["an unknown member", '{"reports":["a"],"more":1}'],
  ["the member twice", '{"reports":["a"],"reports":["b"]}'],
  ["the member twice, once in escapes", '{"reports":["a"],"r\\u0065ports":["b"]}'],
  ["a prototype", '{"__proto__":{"reports":["a"]},"reports":["a"]}'],
  ["a prototype that says nothing", '{"reports":["a"],"__proto__":{}}'],
  ["a prototype in escapes", '{"reports":["a"],"\\u005f_proto__":{}}'],
  ["a byte order mark", '\ufeff{"reports":["a"]}'],
])("a batch with %s is an invalid request", async (_, body) => {
  const answer = await post(body);
  expect([answer.status, answer.json["code"]]).toEqual([400, "invalid-request"]);
});

test("a text that only looks like the member is a report like any other", async () => {
  const answer = await post('{"reports":["\\"reports\\"","reports"]}');
  expect(answer.json["results"]).toMatchObject([{ code: "malformed" }, { code: "malformed" }]);
});

test("501 reports are too many", async () => {
  const answer = await batch(...Array.from({ length: 501 }, () => "x"));
  expect([answer.status, answer.json["code"]]).toEqual([413, "too-many"]);
});

test("bytes that are no UTF-8 are an invalid request", async () => {
  const answer = await raw(
    "POST /v1/reports HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 15\r\n\r\n",
    Buffer.concat([Buffer.from('{"reports":["'), Buffer.from([0xff]), Buffer.from('"')]),
  );
  expect(answer).toMatch(/^HTTP\/1.1 400 /);
});

test.each([
  ["none", ""],
  ["text", "text/plain"],
  ["one that only begins alike", "application/jsonl"],
  ["another charset", "application/json; charset=utf-16"],
])("a media type that is not one of the route's (%s) is refused", async (_, type) => {
  const answer = await post('{"reports":["a"]}', type);
  expect([answer.status, answer.json["code"]]).toEqual([415, "unsupported-media-type"]);
});

test("a compressed body is refused, not unpacked", async () => {
  const headers = { "content-type": "application/json", "content-encoding": "gzip" };
  const answer = await ask(house, "POST /v1/reports", { jose: "x", headers });
  expect([answer.status, answer.json["code"]]).toEqual([415, "unsupported-media-type"]);
});

test("a body of 10 MB is refused, and the next request is answered", async () => {
  const answer = await post("x".repeat(10_000_000));
  expect([answer.status, answer.json["code"]]).toEqual([413, "too-large"]);
  expect((await ask(house, "GET /livez")).status).toBe(200);
});

test("a body without a declared length is cut off at the cap", async () => {
  const head = "POST /v1/reports HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
  const chunk = `${(65_536).toString(16)}\r\n${" ".repeat(65_536)}\r\n`;
  const answer = await raw(
    `${head}connection: close\r\ntransfer-encoding: chunked\r\n\r\n`,
    Buffer.from(chunk.repeat(80)),
  );
  expect(answer).toMatch(/^HTTP\/1.1 413 /);
  expect(answer).toContain('"code":"too-large"');
});

test("a client that goes away in the middle of its request harms nobody", async () => {
  const socket = connect(Number(new URL(house.url).port), "127.0.0.1");
  await once(socket, "connect");
  socket.write("POST /v1/reports HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n");
  socket.write('content-length: 1000\r\n\r\n{"reports":["');
  socket.resetAndDestroy();
  await once(socket, "close");
  expect((await ask(house, "GET /livez")).status).toBe(200);
  expect(house.logged.filter((line) => line.includes("answered 500"))).toEqual([]);
});

test("a path is told its methods, and HEAD is GET without a body", async () => {
  const answer = await ask(house, "DELETE /v1/reports");
  expect([answer.status, answer.json["code"]]).toEqual([405, "method-not-allowed"]);
  expect(answer.headers.get("allow")).toBe("POST");
  expect((await ask(house, "POST /livez", { json: {} })).headers.get("allow")).toBe("GET, HEAD");
  const head = await ask(house, "HEAD /livez");
  expect([head.status, head.text]).toEqual([200, ""]);
  expect((await ask(house, "HEAD /v1/reports")).status).toBe(405);
});

test("while the archive is away nothing is accepted, and the answer says when to come again", async () => {
  const away = `${house.archive}.away`;
  await newLog(house, "unread", 5);
  const { log: fresh } = await newLog(house, "fresh", 6);
  await rename(house.archive, away);
  const late = reported(6, fresh, { counter: "1" });
  await expect
    .poll(async () => (await ask(house, "GET /readyz")).json["refused"], { timeout: 20_000 })
    .toMatchObject({ "archive-unavailable": expect.any(Number) });
  const refused = await send(late);
  expect([refused.status, refused.json["code"]]).toEqual([503, "archive-unavailable"]);
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(ofKind(await entriesOf(house.database.reader, fresh), "usage")).toEqual([]);

  await rename(away, house.archive);
  await expect.poll(async () => (await send(late)).status, { timeout: 20_000 }).toBe(201);
});

/** Bytes as they are, and what came back until the other side closed. */
async function raw(head: string, body: Buffer): Promise<string> {
  const socket = connect(Number(new URL(house.url).port), "127.0.0.1");
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk.toString("utf8");
  });
  socket.on("error", () => undefined);
  socket.write(head);
  socket.write(body);
  await once(socket, "close");
  return answer;
}

/** Where a message ends is read the same by client, relay and GitLab; else one of them reads another's. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../eventually.ts";
import { Pair } from "./pair.ts";

const SMUGGLED = "POST /api/v4/jobs/request HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
const CLOSE = "Host: relay\r\nConnection: close\r\n";

let pair: Pair;
let asked: { line: string; body: string; connection: unknown }[];

beforeEach(async () => {
  pair = new Pair();
  asked = [];
  pair.act = (incoming, response) => {
    const { method, url, socket } = incoming;
    text(incoming).then(
      (body) => {
        asked.push({ line: `${method} ${url}`, body, connection: socket });
        response.end(`to ${url}`);
      },
      () => response.destroy(),
    );
  };
  await pair.open();
});

afterEach(() => pair.close());

const named = "Connection: close, Content-Length, Transfer-Encoding, Host";

test.each([
  ["PUT", `${named}\r\nContent-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`],
  ["GET", `${named}\r\nContent-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`],
  ["DELETE", `${named}\r\nTransfer-Encoding: chunked\r\n\r\n${chunk(SMUGGLED)}`],
  ["PROPFIND", `${named}\r\nTransfer-Encoding: chunked\r\n\r\n${chunk(SMUGGLED)}`],
  [
    "GET",
    `Connection: close\r\n${"a:\r\n".repeat(2_100)}Content-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`,
  ],
])("the content of a %s stays its content, whatever its Connection names", async (method, rest) => {
  const answer = await pair.raw(`${method} /a HTTP/1.1\r\nHost: relay\r\n${rest}`);
  expect(answer).toMatch(/to \/a/);
  expect(asked).toMatchObject([{ line: `${method} /a`, body: SMUGGLED }]);
});

test("no two requests have a connection to GitLab in common, so none reads another's answer", async () => {
  const socket = connect(pair.port, "127.0.0.1");
  socket.write("GET /a HTTP/1.1\r\nHost: relay\r\n\r\n".repeat(2));
  await eventually(() => expect(asked).toHaveLength(2));
  socket.destroy();
  await pair.raw(`GET /b HTTP/1.1\r\n${CLOSE}\r\n`);
  expect(new Set(asked.map(({ connection }) => connection)).size).toBe(3);
});

test.each([
  ["a length and chunks", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
  ["chunks and a length", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"],
  ["two lengths", "Content-Length: 2\r\nContent-Length: 2\r\n\r\nok"],
  ["a list of lengths", "Content-Length: 2, 2\r\n\r\nok"],
  ["a length with zeros before it", "Content-Length: 02\r\n\r\nok"],
  ["a signed length", "Content-Length: +2\r\n\r\nok"],
  ["an absurd length", "Content-Length: 1234567890123456\r\n\r\nok"],
  ["another coding", "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"],
  ["no coding", "Transfer-Encoding:\r\n\r\n"],
  ["identity", "Transfer-Encoding: identity\r\n\r\n"],
  ["chunks twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
  ["a folded line", "X-A: b\r\n Content-Length: 5\r\n\r\n"],
  ["a bare line feed", "X-A: b\nContent-Length: 5\r\n\r\nhello"],
])("%s is 400, and nothing of it reaches GitLab", async (_name, rest) => {
  const answer = await pair.raw(`PUT /a HTTP/1.1\r\nHost: relay\r\n${rest}`);
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(asked).toEqual([]);
});

test("chunks by HTTP/1.0 are 400", async () => {
  const answer = await pair.raw(
    "PUT /a HTTP/1.0\r\nHost: relay\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  );
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
});

test.each(["http://evil.example/a", "*", "/a#b"])(
  "the target %s is 400: the relay goes to GitLab only",
  async (target) => {
    expect(await pair.raw(`OPTIONS ${target} HTTP/1.1\r\n${CLOSE}\r\n`)).toMatch(/ 400 /);
    expect(asked).toEqual([]);
  },
);

test("a target that begins with another host's name, and two Host headers, arrive at GitLab as its own", async () => {
  const heard = await pair.answerWith("HTTP/1.1 204 No Content\r\n\r\n");
  await pair.raw(`GET //evil.example/a HTTP/1.1\r\nHost: evil.example\r\n${CLOSE}\r\n`);
  expect(heard).toHaveLength(1);
  expect(heard[0]).toMatch(/^GET \/\/evil\.example\/a HTTP\/1\.1\r\nHost: 127\.0\.0\.1:[0-9]+\r\n/);
  expect(heard[0]?.match(/host:/gi)).toHaveLength(1);
});

test("a CONNECT is refused, and reaches nobody", async () => {
  expect(await pair.raw("CONNECT evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")).toBe("");
  expect(asked).toEqual([]);
});

test("what follows the last chunk is neither header nor request, in both directions", async () => {
  const chunked = "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nJOB-TOKEN: t\r\n\r\n";
  pair.act = (incoming, response) => {
    text(incoming).then(
      (body) => response.end(JSON.stringify([body, incoming.rawTrailers, incoming.headers])),
      () => response.destroy(),
    );
  };
  const answer = await pair.raw(`PUT /a HTTP/1.1\r\n${CLOSE}${chunked}`);
  expect(answer).toContain('["ok",[],{');
  expect(answer).not.toMatch(/job-token/i);
  await pair.answerWith(`HTTP/1.1 200 OK\r\n${chunked}`);
  const other = await pair.raw(`GET /a HTTP/1.1\r\n${CLOSE}\r\n`);
  expect(other).toMatch(/\r\n\r\n2\r\nok\r\n0\r\n\r\n$/);
});

test.each([
  ["two lengths", "200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok"],
  [
    "a length and chunks",
    "200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  ],
  ["another coding", "200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok"],
  ["a folded line", "200 OK\r\nX-A: b\r\n Content-Length: 5\r\n\r\nhello"],
  ["no such status", "099 What\r\n\r\n"],
  [
    "another protocol, unasked",
    "101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
  ],
])("an answer with %s is 502, and no runner reads it", async (_name, rest) => {
  await pair.answerWith(`HTTP/1.1 ${rest}`);
  const answer = await pair.raw(`GET /a HTTP/1.1\r\n${CLOSE}\r\n`);
  expect(answer).toMatch(/^HTTP\/1\.1 502 /);
});

test.each([
  ["Content-Length: 2\r\n\r\nok", /\r\n\r\nok$/],
  ["Connection: Content-Length, close\r\nContent-Length: 2\r\n\r\nok", /\r\n\r\nok$/],
])("what GitLab sends past the end of an answer is in no answer: %j", async (rest, end) => {
  await pair.answerWith(`HTTP/1.1 200 OK\r\n${rest}HTTP/1.1 201 Created\r\n\r\nsomebody's job`);
  const socket = connect(pair.port, "127.0.0.1");
  let said = "";
  socket.on("data", (piece) => {
    said += piece;
  });
  socket.write("GET /a HTTP/1.1\r\nHost: relay\r\n\r\n");
  await eventually(() => expect(said).toMatch(end));
  socket.write(`GET /b HTTP/1.1\r\n${CLOSE}\r\n`);
  await once(socket, "close");
  expect(said.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
  expect(said).not.toContain("somebody");
});

test("a 204 says no length, and a HEAD has none of the content that it says", async () => {
  await pair.answerWith("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello");
  const none = await pair.raw(`GET /a HTTP/1.1\r\n${CLOSE}\r\n`);
  expect(none).toMatch(/^HTTP\/1\.1 204 No Content\r\n/);
  expect(none).not.toMatch(/Content-Length|hello/);
  await pair.answerWith("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  const head = await pair.raw(`HEAD /a HTTP/1.1\r\n${CLOSE}\r\n`);
  expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n$/);
});

test("an answer that ends with its connection is whole, and one that is short is not", async () => {
  await pair.answerWith("HTTP/1.1 200 OK\r\n\r\nok");
  expect(await pair.raw(`GET /a HTTP/1.1\r\n${CLOSE}\r\n`)).toMatch(/2\r\nok\r\n0\r\n\r\n$/);
  await pair.answerWith("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok");
  const outgoing = request({ port: pair.port, path: "/a" }).end();
  const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
  await expect(text(answer)).rejects.toThrow("aborted");
});

test("a 100 is for those who asked for it", async () => {
  await pair.answerWith(
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
  );
  expect(await pair.raw("GET /a HTTP/1.0\r\n\r\n")).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
});

function chunk(content: string): string {
  return `${content.length.toString(16)}\r\n${content}\r\n0\r\n\r\n`;
}

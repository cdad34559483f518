/** What asks to become another protocol, and what never ends. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../eventually.ts";
import { Pair, portOf } from "./pair.ts";

const UPGRADE = "Host: relay\r\nConnection: close, Upgrade\r\n";

let pair: Pair;

beforeEach(async () => {
  pair = new Pair();
  await pair.open();
});

afterEach(() => pair.close());

test.each([
  ["h2c with a body", "PUT", "Upgrade: h2c\r\nContent-Length: 5\r\n\r\nhello"],
  [
    "h2c with chunks",
    "PUT",
    "Upgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
  ],
  ["a websocket with a body", "GET", "Upgrade: websocket\r\nContent-Length: 5\r\n\r\nhello"],
  ["a websocket or h2c", "PUT", "Upgrade: websocket, h2c\r\nContent-Length: 5\r\n\r\nhello"],
  ["nothing else", "DELETE", "Upgrade: \r\nContent-Length: 5\r\n\r\nhello"],
])("a request that asks for %s is a plain one, with its content", async (_name, method, rest) => {
  let seen: IncomingMessage["headers"] = {};
  pair.act = (incoming, response) => {
    seen = incoming.headers;
    text(incoming).then(
      (body) => response.end(`${incoming.method} ${body}`),
      () => response.destroy(),
    );
  };
  const answer = await pair.raw(`${method} /a HTTP/1.1\r\n${UPGRADE}${rest}`);
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(answer).toContain(`${method} hello`);
  expect(seen).not.toHaveProperty("upgrade");
});

test("a body that comes after such a head, and the request after it, arrive too", async () => {
  pair.act = (incoming, response) => {
    text(incoming).then(
      (body) => response.end(`${incoming.url} ${body}`),
      () => response.destroy(),
    );
  };
  const socket = connect(pair.port, "127.0.0.1");
  let said = "";
  socket.on("data", (chunk) => {
    said += chunk;
  });
  const head = "Host: relay\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 5\r\n\r\n";
  for (const path of ["/a", "/b"]) {
    socket.write(`PUT ${path} HTTP/1.1\r\n${head}he`);
    await once(pair.gitlab, "request");
    socket.write("llo");
    await eventually(() => expect(said).toContain(`${path} hello`));
  }
  socket.destroy();
});

test("a GitLab that turns to another protocol than it was asked for is 502", async () => {
  await pair.answerWith(
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
  );
  const answer = await pair.raw(`GET /a HTTP/1.1\r\n${UPGRADE}Upgrade: websocket\r\n\r\n`);
  expect(answer).toMatch(/^HTTP\/1\.1 502 /);
});

test("a GitLab that says nothing is waited for so long, and then it is 502", async () => {
  const asked = once(pair.gitlab, "request");
  pair.act = () => undefined;
  await pair.relayTo(`http://127.0.0.1:${portOf(pair.gitlab)}`, 200);
  const answer = await pair.raw("GET /a HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n");
  await asked;
  expect(answer).toMatch(/^HTTP\/1\.1 502 /);
});

test("a websocket that nobody speaks by is ended, and one that is spoken by is not", async () => {
  pair.gitlab.on("upgrade", (_incoming: IncomingMessage, socket: Socket) => {
    const head =
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
    socket.write(`${head}\r\n`);
    socket.pipe(socket);
  });
  await pair.relayTo(`http://127.0.0.1:${portOf(pair.gitlab)}`, 300);
  const socket = connect(pair.port, "127.0.0.1");
  socket.write(`GET /a HTTP/1.1\r\n${UPGRADE}Upgrade: websocket\r\n\r\n`);
  let said = "";
  socket.on("data", (chunk) => {
    said += chunk;
  });
  for (let i = 0; i < 10; i++) {
    socket.write(`${i}`);
    await eventually(() => expect(said).toMatch(new RegExp(`${i}$`)));
  }
  await once(socket, "close");
  expect(said).toMatch(/0123456789$/);
});

test.each(["200-ok", "100-continue; a=b"])(
  "Expect: %s is GitLab's to judge",
  async (expectation) => {
    const heard = await pair.answerWith(
      "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n",
    );
    const head = "PUT /a HTTP/1.1\r\nHost: relay\r\nConnection: close\r\nContent-Length: 2\r\n";
    const answer = await pair.raw(`${head}Expect: ${expectation}\r\n\r\nok`);
    expect(answer).toMatch(/^HTTP\/1\.1 417 /);
    expect(heard[0]).toContain(`Expect: ${expectation}\r\n`);
  },
);

test("an answer that GitLab gives before it closes on an upload arrives, and not a 502", async () => {
  pair.gitlab.on("connection", (socket: Socket) => socket.on("error", () => undefined));
  pair.act = (_, response) => {
    response.writeHead(413, { Connection: "close" }).end("too large"); // with the upload unread: a reset
  };
  const size = 64 * 1024 * 1024;
  const socket = connect(pair.port, "127.0.0.1");
  let said = "";
  socket.on("data", (chunk) => {
    said += chunk;
  });
  socket.write(`POST /a HTTP/1.1\r\nHost: relay\r\nContent-Length: ${size}\r\n\r\n`);
  // As a client that reads nothing before it has written everything.
  await new Promise((resolve) => socket.write(Buffer.alloc(size), resolve));
  await eventually(() => expect(said).toMatch(/^HTTP\/1\.1 413 [\s\S]*too large/));
  socket.destroy();
});

test("an upload to a GitLab that is away is read to its end, and answered 502", async () => {
  pair.act = (incoming) => incoming.socket.resetAndDestroy();
  const size = 16 * 1024 * 1024;
  const socket = connect(pair.port, "127.0.0.1");
  let said = "";
  socket.on("data", (chunk) => {
    said += chunk;
  });
  socket.write(`POST /a HTTP/1.1\r\nHost: relay\r\nContent-Length: ${size}\r\n\r\n`);
  await new Promise((resolve) => socket.write(Buffer.alloc(size), resolve));
  await eventually(() => expect(said).toMatch(/^HTTP\/1\.1 502 /));
  socket.destroy();
});

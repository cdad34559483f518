import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { connect, createServer as createTcpServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../eventually.ts";
import { Pair, portOf } from "./pair.ts";

let pair: Pair;

beforeEach(async () => {
  pair = new Pair();
  await pair.open();
});

afterEach(() => pair.close());

test("a request arrives as it was sent: path, order, case and repetition of headers, body", async () => {
  let seen: { headers: string[]; url: string | undefined; body: string } | undefined;
  pair.act = (incoming, response) => {
    text(incoming).then(
      (body) => {
        seen = { headers: incoming.rawHeaders, url: incoming.url, body };
        response.end();
      },
      () => response.destroy(),
    );
  };
  await pair.raw(
    "POST /api/v4/x%2Fy?a=b&a=%00 HTTP/1.1\r\nhost: relay\r\nX-Two: 1\r\nx-one: \xe9\r\nX-Two: 2\r\n" +
      "Keep-Alive: 5\r\nX-Hop: 1\r\nConnection: close, x-hop\r\ncontent-LENGTH: 5\r\n\r\nhello",
  );
  const host = `127.0.0.1:${portOf(pair.gitlab)}`;
  expect(seen).toEqual({
    url: "/api/v4/x%2Fy?a=b&a=%00",
    body: "hello",
    headers: [
      ...["Host", host, "X-Two", "1", "x-one", "\xe9", "X-Two", "2", "content-LENGTH", "5"],
      ...["Connection", "close"],
    ],
  });
});

test("an answer arrives as it was given: reason, headers, body, and no header more", async () => {
  pair.act = (_, response) => {
    response.sendDate = false;
    const headers = [
      "set-Cookie",
      "a=1",
      "Set-Cookie",
      "b=2",
      "X-Last",
      "\xe9",
      "Content-Length",
      "2",
    ];
    response.writeHead(299, "Quite All Right", headers);
    response.end(Buffer.from("ok")); // a text would take its headers along into UTF-8
  };
  const answer = await pair.raw("GET / HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n");
  expect(answer).toBe(
    "HTTP/1.1 299 Quite All Right\r\nset-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Last: \xe9\r\n" +
      "Content-Length: 2\r\nConnection: close\r\n\r\nok",
  );
});

test.each(["204 No Content", "304 Not Modified"])("%s has no body and gets none", async (line) => {
  pair.act = (_, response) => {
    const [code = "", ...reason] = line.split(" ");
    response.writeHead(Number(code), reason.join(" "), { "X-GitLab-Last-Update": "x" }).end();
  };
  const answer = await pair.raw("GET / HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n");
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${line}\r\nX-GitLab-Last-Update: x\r\n`));
  expect(answer.endsWith("\r\n\r\n")).toBe(true);
});

test("a PUT without a body is not made chunked, and a chunked one stays chunked", async () => {
  const seen: IncomingMessage[] = [];
  pair.act = (incoming, response) => {
    seen.push(incoming);
    incoming.resume().on("end", () => response.end());
  };
  await pair.raw("PUT /a HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n");
  const chunked = "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
  await pair.raw(`DELETE /b HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n${chunked}`);
  expect(seen[0]?.headers).toMatchObject({ "content-length": "0" });
  expect(seen[0]?.headers).not.toHaveProperty("transfer-encoding");
  expect(seen[1]?.headers).toMatchObject({ "transfer-encoding": "chunked" });
});

test("GitLab that cannot be reached is 502, which a runner tries again", async () => {
  const nobody = createTcpServer().listen(0, "127.0.0.1");
  await once(nobody, "listening");
  const port = portOf(nobody);
  nobody.close();
  await once(nobody, "close");
  await pair.relayTo(`http://127.0.0.1:${port}`);
  const answer = await pair.raw("GET / HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n");
  expect(answer).toContain("502 Bad Gateway");
  expect(answer).toContain("The relay cannot reach GitLab (ECONNREFUSED).");
});

test("an upgrade passes, with what was said before and after", async () => {
  pair.gitlab.on("upgrade", (incoming: IncomingMessage, socket: Socket, first: Buffer) => {
    const { upgrade, "sec-websocket-key": key } = incoming.headers;
    const head = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: ${upgrade}\r\nConnection: Upgrade\r\n`;
    socket.write(`${head}X-Key: ${key}\r\n\r\nhello ${first}`);
    socket.pipe(socket);
  });
  const socket = connect(pair.port, "127.0.0.1");
  const head =
    "GET /session HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
  socket.write(`${head}Sec-WebSocket-Key: k\r\n\r\nearly`);
  let said = "";
  socket.on("data", (chunk) => {
    said += chunk;
  });
  await eventually(() => expect(said).toContain("hello early"));
  expect(said).toContain("Upgrade: websocket\r\nConnection: Upgrade\r\nX-Key: k\r\n\r\n");
  socket.end(" and late");
  await once(socket, "close");
  expect(said).toMatch(/hello early and late$/);
});

test("an upgrade that GitLab refuses is answered as GitLab answers", async () => {
  pair.act = (_, response) => {
    response.writeHead(403, { "X-Why": "no session" }).end("no");
  };
  const answer = await pair.raw(
    "GET / HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
  );
  expect(answer).toMatch(/^HTTP\/1.1 403 Forbidden\r\nX-Why: no session\r\n/);
  expect(answer).toMatch(/\r\n\r\nno$/);
});

test("a GitLab under a path of its own is asked there", async () => {
  const port = portOf(pair.gitlab);
  await pair.relayTo(`http://127.0.0.1:${port}/gitlab/`);
  pair.act = (incoming, response) => {
    response.end(incoming.url);
  };
  const answer = await pair.raw(
    "GET /api/v4?x HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n",
  );
  expect(answer).toContain("/gitlab/api/v4?x");
});

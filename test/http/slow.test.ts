import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import type { HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listen } from "../../src/command/listener.ts";
import { readText } from "../../src/http/body.ts";
import { errorResponse } from "../../src/http/problem.ts";
import { openRoom } from "../../src/http/room.ts";
import { reported } from "../flow/door.ts";
import { ask, type House, newAgent, newLog, openHouse } from "./house.ts";

let house: House;
let log: string;

beforeAll(async () => {
  house = await openHouse();
  ({ log } = await newLog(house, "slow", 1));
});

afterAll(() => house.close());

/** A connection on which all of a body but its last ten bytes was sent. */
function withholding(url: string, path: string, bytes: number): Socket {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n`);
  socket.write(`content-length: ${bytes}\r\n\r\n${" ".repeat(bytes - 10)}`);
  return socket;
}

const FULL = 4 * 1024 * 1024;
/** As many full bodies as the room takes. */
const FITTING = 6;

test("nine clients that hold back the ends of their bodies keep no runner, no operator and no batch out", async () => {
  const sockets = Array.from({ length: 9 }, () => withholding(house.url, "/v1/reports", FULL));
  let refused = 0;
  for (const socket of sockets) {
    socket.once("data", (answer: Buffer) => {
      if (answer.toString("latin1").startsWith("HTTP/1.1 503 ")) refused++;
    });
  }
  const tooMany = sockets.length - FITTING;
  await expect.poll(() => refused, { timeout: 20_000 }).toBeGreaterThanOrEqual(tooMany);

  const { status } = await ask(house, "POST /v1/reports", { jose: reported(1, log) });
  expect(status).toBe(201);
  await newAgent(house, log, 2, { uuid: "enrolled meanwhile" });
  const large = { jose: "x".repeat(100_000) };
  // Who has stood still for a quarter of a second makes way: until then it may be `busy`, and is sent again.
  const answered = async () => (await ask(house, "POST /v1/reports", large)).json["code"];
  await expect.poll(answered, { timeout: 20_000 }).toBe("malformed");
  for (const socket of sockets) socket.destroy();
});

test("whoever holds back the end of a body is answered 408, and the connection is closed", async () => {
  const room = openRoom({ ms: 20 });
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.post("/", async ({ env: { incoming } }) => {
    return await readText({ incoming, room }, FULL).then(
      (body) => new Response(body),
      (error: unknown) => errorResponse(error, () => undefined),
    );
  });
  const { url, close } = await listen(app, { host: "127.0.0.1", port: 0 });
  const socket = withholding(url, "/", 1_000);
  const closed = once(socket, "close");
  const answer = await text(socket);
  await closed;
  expect(answer).toMatch(/^HTTP\/1.1 408 /);
  expect(answer).toMatch(/\r\nconnection: close\r\n/i);
  expect(answer).toContain('"code":"body-too-slow"');
  await close();
});

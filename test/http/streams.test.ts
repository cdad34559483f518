import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openStreams } from "../../src/http/streams.ts";

const server = createServer();

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => void server.close());

/** The service's end of a connection, and the other one, which reads nothing. */
async function connection(): Promise<[Socket, Socket]> {
  const { port } = server.address() as AddressInfo;
  const accepted = once(server, "connection");
  const client = connect({ host: "127.0.0.1", port });
  client.on("error", () => undefined);
  const [socket] = (await accepted) as [Socket];
  // A connection has one at a time; here it has a share of them.
  socket.setMaxListeners(0);
  return [socket, client];
}

test("a stream that takes too long is told to end, and one that is not read ends with its connection", async () => {
  const [socket, client] = await connection();
  const { signal } = openStreams(50).open("p", socket);
  await once(signal, "abort");
  expect(socket.destroyed).toBe(false);
  await once(socket, "close");
  client.destroy();
});

test("one that is written in time leaves its connection to others, and its place", async () => {
  const [socket, client] = await connection();
  const streams = openStreams();
  const opened = Array.from({ length: 20 }, () => streams.open("p", socket));
  expect(() => streams.open("p", socket)).toThrow("busy");
  streams.open("another", socket).done();
  streams.close();
  for (const { done } of opened) done();
  expect(streams.open("p", socket).signal.aborted).toBe(true);
  client.destroy();
  await once(socket, "close");
});

test("whoever goes away leaves their place, whether or not their stream was begun", async () => {
  const [socket, client] = await connection();
  const streams = openStreams();
  const opened = Array.from({ length: 20 }, () => streams.open("p", socket));
  client.destroy();
  await once(socket, "close");
  expect(opened.every(({ signal }) => signal.aborted)).toBe(true);
  expect(streams.open("p", socket).signal.aborted).toBe(false);
  streams.close();
});

import { once } from "node:events";
import { Agent, get } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import type { HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import { expect, test } from "vitest";
import { listen } from "../../src/command/listener.ts";

const HERE = { host: "127.0.0.1", port: 0 };

/** An application whose only route answers when the test says so. */
function held() {
  const app = new Hono<{ Bindings: HttpBindings }>();
  let release = (): void => undefined;
  let entered = (): void => undefined;
  const taken = new Promise<void>((resolve) => {
    entered = resolve;
  });
  const answer = new Promise<void>((resolve) => {
    release = resolve;
  });
  app.get("/now", (c) => c.text("now"));
  app.get("/held", async (c) => {
    entered();
    await answer;
    return c.text("held");
  });
  return { app, taken, release };
}

test("a close waits for the answer that is under way, and takes no new connection", async () => {
  const { app, taken, release } = held();
  const { url, close } = await listen(app, HERE);
  const answer = fetch(`${url}/held`);
  await taken;
  const closed = close();
  await expect(fetch(`${url}/now`)).rejects.toThrow();
  release();
  expect(await (await answer).text()).toBe("held");
  await closed;
});

test("a connection on which nothing was asked yet is not waited for", async () => {
  const { url, close } = await listen(held().app, HERE);
  const socket = connect(Number(new URL(url).port), HERE.host);
  await once(socket, "connect");
  // Answered on a connection behind it: the first one is known to the server by now.
  await (await fetch(`${url}/now`)).text();
  const ended = once(socket, "close");
  await close();
  await ended;
});

test("an idle connection stays for longer than load balancers keep one", async () => {
  const { url, close } = await listen(held().app, HERE);
  const { headers } = await fetch(`${url}/now`);
  const [, seconds] = /timeout=([0-9]+)/.exec(headers.get("keep-alive") ?? "") ?? [];
  expect(Number(seconds)).toBeGreaterThan(60);
  await close();
});

test("a client that never pauses cannot keep a closing server", async () => {
  const { app } = held();
  const { url, close } = await listen(app, HERE);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = async (): Promise<boolean> => {
    const request = get(`${url}/now`, { agent });
    try {
      const [response] = await once(request, "response");
      await text(response);
      return true;
    } catch {
      return false;
    }
  };
  expect(await ask()).toBe(true);
  let busy = true;
  const asking = (async () => {
    while (busy) busy = await ask();
  })();
  await close();
  await asking;
  agent.destroy();
});

test("a request whose Host makes no URL is a problem like any other", async () => {
  const { app } = held();
  const { url, close } = await listen(app, HERE);
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.write("GET /now HTTP/1.1\r\nhost: a b/c\r\nconnection: close\r\n\r\n");
  const answer = await text(socket);
  expect(answer).toMatch(/^HTTP\/1.1 400 /);
  expect(answer).toContain("application/problem+json");
  await close();
});

test("an address that is taken is an error, not a silence", async () => {
  const { app } = held();
  const { url, close } = await listen(app, HERE);
  const taken = { host: "127.0.0.1", port: Number(new URL(url).port) };
  await expect(listen(app, taken)).rejects.toMatchObject({ code: "EADDRINUSE" });
  await close();
});

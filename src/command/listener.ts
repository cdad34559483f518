/** The HTTP server: opened on an address, and closed without losing an answer. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import type { createApp } from "../http/app.ts";
import { problemDocument, respond } from "../http/problem.ts";

export interface Listener {
  /** Without a trailing slash. */
  url: string;
  /** No new connection, no idle one; resolves when every request that was taken is answered. */
  close(): Promise<void>;
}

const REQUEST_MS_MAX = 60_000;
/** Load balancers give an idle connection up after 60 s; we must not close it first, just when one sends. */
const KEEP_ALIVE_MS = 65_000;
/** Whoever takes longer than this to send or to read is not waited for. */
const CLOSING_MS_MAX = 20_000;
const CLOSING_POLL_MS = 20;

/** @param address port 0: any free one. Rejects when the address is taken */
export async function listen(
  app: ReturnType<typeof createApp>,
  { host, port }: { host: string; port: number },
): Promise<Listener> {
  let closing = false;
  const answer = getRequestListener(app.fetch, {
    // Before any route: a Host header, or a target, that makes no URL.
    errorHandler: () => respond(problemDocument("invalid-request")),
  });
  const times = { requestTimeout: REQUEST_MS_MAX, keepAliveTimeout: KEEP_ALIVE_MS };
  const server = createServer(times, (incoming, outgoing) => {
    // A client that never pauses would keep its connection, and us, for ever.
    if (closing) outgoing.setHeader("connection", "close");
    return answer(incoming, outgoing);
  });
  const silent = silentOf(server);
  server.listen(port, host);
  await once(server, "listening");
  const { port: found } = server.address() as AddressInfo;
  const name = host.includes(":") ? `[${host}]` : host;
  return {
    url: `http://${name}:${found}`,
    close: () => {
      closing = true;
      return close(server, silent);
    },
  };
}

/** Connections on which nothing was asked yet: opened ahead of need, and to Node none that is idle. */
function silentOf(server: Server): ReadonlySet<Socket> {
  const silent = new Set<Socket>();
  server.on("connection", (socket) => {
    silent.add(socket);
    socket.once("close", () => silent.delete(socket));
  });
  server.on("request", ({ socket }) => silent.delete(socket));
  return silent;
}

async function close(server: Server, silent: ReadonlySet<Socket>): Promise<void> {
  const gone = once(server, "close");
  server.close();
  for (const socket of silent) {
    if (socket.bytesRead === 0) socket.destroy();
  }
  // A connection that is in a request now becomes idle later, and nobody tells.
  const idle = setInterval(() => server.closeIdleConnections(), CLOSING_POLL_MS);
  const late = setTimeout(() => server.closeAllConnections(), CLOSING_MS_MAX);
  await gone;
  clearInterval(idle);
  clearTimeout(late);
}

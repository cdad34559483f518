/** The HTTP server: opened on an address, and closed without losing an answer. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import type { createApp } from "../http/app.ts";

export interface Listener {
  /** Without a trailing slash. */
  url: string;
  /** No new connection, no idle one; resolves when every request that was taken is answered. */
  close(): Promise<void>;
}

const REQUEST_MS_MAX = 60_000;

/** @param address port 0: any free one. Rejects when the address is taken */
export async function listen(
  app: ReturnType<typeof createApp>,
  { host, port }: { host: string; port: number },
): Promise<Listener> {
  const server = createServer({ requestTimeout: REQUEST_MS_MAX }, getRequestListener(app.fetch));
  server.listen(port, host);
  await once(server, "listening");
  const { port: found } = server.address() as AddressInfo;
  const name = host.includes(":") ? `[${host}]` : host;
  return { url: `http://${name}:${found}`, close: () => close(server) };
}

async function close(server: Server): Promise<void> {
  const gone = once(server, "close");
  server.close();
  server.closeIdleConnections();
  await gone;
}

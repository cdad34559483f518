/** The proxy alone, before a server that does what a test says. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { buffer } from "node:stream/consumers";
import { forward, forwardUpgrade, Upstream } from "../../../src/agent/relay/proxy.ts";

export class Pair {
  readonly gitlab = createServer();
  readonly proxy = createServer();
  upstream = new Upstream(new URL("http://localhost"));
  readonly #sockets = new Set<Duplex>();
  /** What GitLab does in this test. */
  act: (request: IncomingMessage, response: ServerResponse) => void = (_, response) => {
    response.end();
  };

  async open(): Promise<void> {
    this.gitlab.on("request", (incoming, response) => this.act(incoming, response));
    const serve = (incoming: IncomingMessage, response: ServerResponse): void => {
      forward(this.upstream, incoming, response, {});
    };
    this.proxy.on("request", serve);
    this.proxy.on("checkContinue", serve);
    this.proxy.on("upgrade", (incoming, socket, first) => {
      forwardUpgrade(this.upstream, incoming, socket, first);
    });
    for (const server of [this.gitlab, this.proxy]) {
      server.on("connection", (socket: Socket) => this.#sockets.add(socket));
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
    }
    this.upstream = new Upstream(new URL(`http://127.0.0.1:${portOf(this.gitlab)}`));
  }

  async close(): Promise<void> {
    this.upstream.close();
    for (const socket of this.#sockets) socket.destroy();
    for (const server of [this.gitlab, this.proxy]) {
      server.close();
      await once(server, "close");
    }
  }

  get port(): number {
    return portOf(this.proxy);
  }

  /** What comes back to these bytes, to the last one, by a connection that is then over. */
  async raw(bytes: string): Promise<string> {
    const socket = connect(this.port, "127.0.0.1");
    socket.write(bytes, "latin1");
    return (await buffer(socket)).toString("latin1");
  }
}

export function portOf(server: Pick<Server, "address">): number {
  return (server.address() as AddressInfo).port;
}

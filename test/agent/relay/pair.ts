/** The proxy alone, before a server that does what a test says. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Server,
  type Socket,
} from "node:net";
import { buffer } from "node:stream/consumers";
import { Front } from "../../../src/agent/relay/front.ts";
import { Upstream } from "../../../src/agent/relay/upstream.ts";

export class Pair {
  readonly gitlab = createServer();
  readonly #servers: Server[] = [];
  readonly #upstreams: Upstream[] = [];
  readonly #sockets = new Set<Socket>();
  #port = 0;
  /** What GitLab does in this test. */
  act: (request: IncomingMessage, response: ServerResponse) => void = (_, response) => {
    response.end();
  };

  async open(): Promise<void> {
    this.gitlab.on("request", (incoming, response) => this.act(incoming, response));
    await this.#listen(this.gitlab);
    await this.relayTo(`http://127.0.0.1:${portOf(this.gitlab)}`);
  }

  /** Requests go there from now on. */
  async relayTo(url: string, silentMs?: number): Promise<void> {
    const upstream = new Upstream(new URL(url), silentMs);
    this.#upstreams.push(upstream);
    const { server } = new Front({ upstream, watch: () => ({}) });
    await this.#listen(server);
    this.#port = portOf(server);
  }

  /**
   * A GitLab that reads no HTTP: it gives each connection these bytes once something came by it.
   *
   * @returns what came, by connection
   */
  async answerWith(bytes: string): Promise<string[]> {
    const heard: string[] = [];
    const server = createTcpServer((socket) => {
      const at = heard.push("") - 1;
      socket.on("error", () => undefined);
      socket.on("data", (chunk) => {
        if (heard[at] === "") socket.end(bytes, "latin1");
        heard[at] += chunk.toString("latin1");
      });
    });
    await this.#listen(server);
    await this.relayTo(`http://127.0.0.1:${portOf(server)}`);
    return heard;
  }

  async close(): Promise<void> {
    for (const upstream of this.#upstreams) upstream.close();
    for (const socket of this.#sockets) socket.destroy();
    for (const server of this.#servers) {
      const closed = once(server, "close");
      server.close();
      await closed;
    }
  }

  get port(): number {
    return this.#port;
  }

  /** What comes back to these bytes, to the last one, by a connection that is then over. */
  async raw(bytes: string): Promise<string> {
    const socket = connect(this.port, "127.0.0.1");
    socket.write(bytes, "latin1");
    return (await buffer(socket)).toString("latin1");
  }

  async #listen(server: Server): Promise<void> {
    this.#servers.push(server);
    server.on("connection", (socket: Socket) => this.#sockets.add(socket));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  }
}

export function portOf(server: Pick<Server, "address">): number {
  return (server.address() as AddressInfo).port;
}

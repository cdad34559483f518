/** The side of the relay that gitlab-runner and its helpers talk to. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { Duplex } from "node:stream";
import { forward, type Watcher } from "./proxy.ts";
import { asksForWebSocket, declined, forwardUpgrade } from "./upgrade.ts";
import type { Upstream } from "./upstream.ts";

export interface FrontOptions {
  upstream: Upstream;
  watch: (request: IncomingMessage) => Watcher;
  /** PEM, to listen by TLS. */
  tls?: { cert: string; key: string } | undefined;
}

/** Go's client gives up an idle connection after 90 s; we must not close it first, just when it sends. */
const KEEP_ALIVE_MS = 120_000;
/** Not a byte either way. GitLab's own silence is answered before (`Upstream`). */
const SILENT_MS = 20 * 60_000;

export class Front {
  readonly server: Server;
  readonly #options: FrontOptions;
  readonly #upgraded = new Set<Duplex>();
  #isEnding = false;

  constructor(options: FrontOptions) {
    this.#options = options;
    const { tls } = options;
    const parser = { insecureHTTPParser: false }; // whatever NODE_OPTIONS say
    const server =
      tls === undefined ? createServer(parser) : createTlsServer({ ...parser, ...tls });
    this.server = server;
    server.maxHeadersCount = 0; // none is dropped unseen; their bytes are bounded
    server.requestTimeout = 0; // an artifact takes as long as it takes
    server.timeout = SILENT_MS;
    server.keepAliveTimeout = KEEP_ALIVE_MS;
    const serve = (request: IncomingMessage, response: ServerResponse): void =>
      this.#serve(request, response);
    server.on("request", serve);
    server.on("checkContinue", serve);
    server.on("checkExpectation", serve); // GitLab's to judge
    server.on("upgrade", (request: IncomingMessage, socket: Duplex, first: Uint8Array) => {
      this.#upgrade(request, socket, first);
    });
  }

  /** No new connection, and none that stays after what is under way. */
  end(): void {
    this.#isEnding = true;
    this.server.close();
    for (const socket of this.#upgraded) socket.destroy();
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    response.shouldKeepAlive &&= !this.#isEnding;
    // A connection that was promised to stay, and is idle by then, would hold up the end.
    response.on("close", () => {
      if (this.#isEnding) setImmediate(() => this.server.closeIdleConnections());
    });
    forward(this.#options.upstream, request, response, this.#options.watch(request));
  }

  #upgrade(request: IncomingMessage, socket: Duplex, first: Uint8Array): void {
    const { upstream, tls } = this.#options;
    if (!asksForWebSocket(request)) {
      socket.unshift(declined(request, first));
      this.server.emit(tls === undefined ? "connection" : "secureConnection", socket);
      return;
    }
    this.#upgraded.add(socket);
    socket.on("close", () => this.#upgraded.delete(socket));
    forwardUpgrade(upstream, request, socket, first);
  }
}

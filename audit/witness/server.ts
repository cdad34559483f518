/** A witness over HTTP: `POST /add-checkpoint`, and what it last cosigned of each log. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { concat } from "../../src/core/text.ts";
import { type Answer, addCheckpoint, type Witnessing } from "./answer.ts";
import { nameOf } from "./store.ts";

export interface WitnessServer {
  url: string;
  /** No new connection; what is under way is waited for, and cut off after five seconds. */
  close(): Promise<void>;
}

export interface ServerOptions extends Witnessing {
  host: string;
  /** 0 for whichever is free. */
  port: number;
  /** What could not be done; the caller is told nothing but 500. */
  onError(error: unknown): void;
}

/** A hundred signatures, and 63 hashes, are 15 KB. */
const BODY_BYTES_MAX = 65_536;
/** Of a request, from its first byte to its last. */
const REQUEST_MS_MAX = 10_000;
/** Node ends its own timeouts with `close`: whoever only holds a connection would hold the process. */
const CLOSING_MS_MAX = 5_000;
const CLOSING_POLL_MS = 20;
const TEXT = "text/plain; charset=utf-8";
const NOT_FOUND: Answer = { status: 404, body: "not found\n", type: TEXT };
const NOT_ALLOWED: Answer = { status: 405, body: "method not allowed\n", type: TEXT };
const TOO_LARGE: Answer = { status: 413, body: "too large\n", type: TEXT };

export async function startWitness(options: ServerOptions): Promise<WitnessServer> {
  const names = new Map(Array.from(options.logs.keys(), (origin) => [nameOf(origin), origin]));
  const server = createServer(async (ask, response) => {
    try {
      send(response, await answerTo(ask, names, options));
    } catch (error) {
      options.onError(error);
      if (!response.headersSent) send(response, { status: 500, body: "failed\n", type: TEXT });
    }
  });
  server.requestTimeout = REQUEST_MS_MAX;
  server.headersTimeout = REQUEST_MS_MAX;
  await new Promise<void>((listening, failed) => {
    server.once("error", failed);
    server.listen(options.port, options.host, listening);
  });
  const { address, family, port } = server.address() as AddressInfo;
  return {
    url: `http://${family === "IPv6" ? `[${address}]` : address}:${port}`,
    close: () => close(server),
  };
}

async function close(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  // A connection whose answer is under way becomes idle later, and nobody tells.
  const idle = setInterval(() => server.closeIdleConnections(), CLOSING_POLL_MS);
  const late = setTimeout(() => server.closeAllConnections(), CLOSING_MS_MAX);
  await closed;
  clearInterval(idle);
  clearTimeout(late);
}

async function answerTo(
  ask: IncomingMessage,
  names: ReadonlyMap<string, string>,
  witnessing: Witnessing,
): Promise<Answer> {
  const [, path = ""] = /^\/([^?]*)/.exec(ask.url ?? "") ?? [];
  if (path === "add-checkpoint") {
    if (ask.method !== "POST") return NOT_ALLOWED;
    const body = await bodyOf(ask);
    return body === undefined ? TOO_LARGE : addCheckpoint(body, witnessing);
  }
  const origin = names.get(/^([0-9a-f]{64})\/checkpoint$/.exec(path)?.[1] ?? "");
  if (origin === undefined) return NOT_FOUND;
  if (ask.method !== "GET" && ask.method !== "HEAD") return NOT_ALLOWED;
  const { cosigned } = witnessing.store.latest(origin);
  return cosigned === undefined ? NOT_FOUND : { status: 200, body: cosigned.note, type: TEXT };
}

/** Undefined as soon as it is too long: the rest is not waited for. */
async function bodyOf(ask: IncomingMessage): Promise<Uint8Array | undefined> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of ask.iterator({ destroyOnReturn: false })) {
    length += part.length;
    if (length > BODY_BYTES_MAX) return undefined;
    parts.push(part);
  }
  return concat(...parts);
}

function send(response: ServerResponse, { body, status, type }: Answer): void {
  response.writeHead(status, {
    "cache-control": "no-store",
    "content-type": type,
    ...(status === 413 && { connection: "close" }),
  });
  response.end(body);
}

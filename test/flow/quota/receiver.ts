/** A receiver of webhooks: a real HTTP server that does what a test tells it, and remembers what it got. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";
import { vi } from "vitest";

export interface Received {
  id: string;
  timestamp: number;
  headers: Record<string, string>;
  body: string;
}

export type Behaviour = (response: ServerResponse, received: Received) => void;

export const answering =
  (status: number, headers: Record<string, string> = {}, body = ""): Behaviour =>
  (response) => {
    response.writeHead(status, headers).end(body);
  };

export class Receiver {
  readonly received: Received[] = [];
  /** Of what comes next; the last one stays. */
  behaviours: Behaviour[] = [answering(204)];
  /** Also when nobody listens there any more. */
  url = "";
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      void this.#take(request, response);
    });
  }

  async listen(): Promise<this> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    const { port } = this.#server.address() as AddressInfo;
    this.url = `http://127.0.0.1:${port}/hook`;
    return this;
  }

  get ids(): string[] {
    return this.received.map(({ id }) => id);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    );
    const received = {
      id: headers["webhook-id"] ?? "",
      timestamp: Number(headers["webhook-timestamp"]),
      headers,
      body: Buffer.concat(chunks).toString(),
    };
    this.received.push(received);
    const [behaviour = answering(204), ...rest] = this.behaviours;
    if (rest.length > 0) this.behaviours = rest;
    behaviour(response, received);
  }
}

export const whsec = (secret: Uint8Array): string =>
  `whsec_${Buffer.from(secret).toString("base64")}`;

/** What the reference library of the standard makes of it, at the time of the attempt. */
export function verified(secret: Uint8Array, { body, headers, timestamp }: Received): unknown {
  vi.useFakeTimers({ toFake: ["Date"], now: timestamp * 1_000 });
  try {
    return new Webhook(whsec(secret)).verify(body, headers);
  } finally {
    vi.useRealTimers();
  }
}

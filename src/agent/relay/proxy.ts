/**
 * A reverse proxy that adds and takes nothing. By node:http alone: between a Request and a Response of
 * fetch, as frameworks have them, the case, order and repetition of headers, 100-continue, upgrades and
 * the moment of an abort are lost.
 */
import {
  Agent,
  type ClientRequest,
  type IncomingMessage,
  request,
  type ServerResponse,
} from "node:http";
import { request as requestTls, Agent as TlsAgent } from "node:https";
import { type Duplex, pipeline } from "node:stream";
import { errnoOf } from "../failure.ts";
import { endToEnd, type RawHeaders, valuesOf, withHeader } from "./headers.ts";

export interface Head {
  status: number;
  headers: RawHeaders;
}

/** Who looks on. What passes waits for nobody, but for `head`. */
export interface Watcher {
  sent?(chunk: Uint8Array): void;
  /** The request came to its end. */
  asked?(): void;
  /** The headers that the answer goes on with. */
  head?(head: Head): Promise<RawHeaders>;
  answered?(chunk: Uint8Array): void;
  /** The answer came to its end, whose last byte has not been handed over yet. */
  complete?(): void;
  /** @param whole the answer was handed over to its last byte */
  ended?(whole: boolean): void;
}

/** Shorter than GitLab's own (nginx: 75 s), so that a connection that is used is seldom one just closed. */
const IDLE_MS = 15_000;

const NOTHING = new Uint8Array();

export class Upstream {
  readonly #target: URL;
  readonly #agent: Agent;

  /** @param target GitLab's address; its path, if any, comes before that of each request */
  constructor(target: URL) {
    this.#target = target;
    const options = { keepAlive: true, timeout: IDLE_MS };
    this.#agent = target.protocol === "https:" ? new TlsAgent(options) : new Agent(options);
  }

  open(method: string, path: string, headers: RawHeaders): ClientRequest {
    const { protocol, hostname, port, pathname, host } = this.#target;
    return (protocol === "https:" ? requestTls : request)({
      agent: this.#agent,
      hostname: hostname.replace(/^\[|\]$/g, ""),
      port,
      method,
      path: `${pathname.replace(/\/$/, "")}${path}`,
      headers: withHeader(headers, "Host", host),
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

export function forward(
  upstream: Upstream,
  incoming: IncomingMessage,
  response: ServerResponse,
  watcher: Watcher,
): void {
  const outgoing = upstream.open(
    incoming.method ?? "",
    incoming.url ?? "",
    requestHeaders(incoming),
  );
  response.sendDate = false;
  outgoing.on("continue", () => {
    response.writeContinue();
  });
  outgoing.on("response", (answer) => {
    pass(answer, response, watcher).catch(() => response.destroy());
  });
  outgoing.on("error", (error) => {
    if (response.headersSent) response.destroy();
    else refuse(response, error);
  });
  // Whoever went away is waited for by nobody.
  response.on("close", () => {
    if (!response.writableFinished) outgoing.destroy();
    watcher.ended?.(response.writableFinished);
  });
  incoming.on("data", (chunk: Uint8Array) => watcher.sent?.(chunk));
  incoming.on("end", () => watcher.asked?.());
  incoming.pipe(outgoing);
}

async function pass(
  answer: IncomingMessage,
  response: ServerResponse,
  watcher: Watcher,
): Promise<void> {
  const status = answer.statusCode ?? 0;
  const came = endToEnd(answer.rawHeaders);
  const headers = (await watcher.head?.({ status, headers: came })) ?? came;
  if (response.destroyed) return;
  response.writeHead(status, answer.statusMessage, [...headers]);
  // At once, as an answer may begin long before its first byte of content. And not by flushHeaders, which
  // would write them in UTF-8 where Node reads them, byte by byte, as Latin-1.
  response.write(NOTHING);
  answer.on("data", (chunk: Uint8Array) => watcher.answered?.(chunk));
  answer.on("end", () => watcher.complete?.());
  pipeline(answer, response, () => undefined); // what broke off here breaks off there
}

/** The framing is this connection's own, so it is said anew. */
function requestHeaders({ rawHeaders, method = "" }: IncomingMessage): string[] {
  const headers = endToEnd(rawHeaders);
  if (valuesOf(rawHeaders, "transfer-encoding").length > 0) {
    return [...headers, "Transfer-Encoding", "chunked"];
  }
  const bodiless = valuesOf(headers, "content-length").length === 0;
  // RFC 9110 §8.6; Node would announce chunks.
  const says = bodiless && ["POST", "PUT", "PATCH"].includes(method);
  return says ? [...headers, "Content-Length", "0"] : headers;
}

/** 502, which gitlab-runner tries again by itself. */
function refuse(response: ServerResponse, error: Error): void {
  const text = `The relay cannot reach GitLab (${errnoOf(error) ?? "no answer"}).\n`;
  response.writeHead(502, { "content-type": "text/plain", "content-length": text.length });
  response.end(text);
}

/** The connection becomes whatever both sides agree upon. */
export function forwardUpgrade(
  upstream: Upstream,
  incoming: IncomingMessage,
  socket: Duplex,
  first: Uint8Array,
): void {
  const [protocol = ""] = valuesOf(incoming.rawHeaders, "upgrade");
  const headers = [...requestHeaders(incoming), "Connection", "Upgrade", "Upgrade", protocol];
  const outgoing = upstream.open(incoming.method ?? "", incoming.url ?? "", headers);
  outgoing.on("upgrade", (answer, far, farFirst) => {
    socket.write(rawHead(answer, answer.rawHeaders));
    socket.write(farFirst);
    far.write(first);
    pipeline(socket, far, () => undefined);
    pipeline(far, socket, () => undefined);
  });
  outgoing.on("response", (answer) => {
    // By a raw socket, the end of the connection is the end of the content.
    socket.write(rawHead(answer, [...endToEnd(answer.rawHeaders), "Connection", "close"]));
    pipeline(answer, socket, () => undefined);
  });
  outgoing.on("error", () => socket.destroy());
  socket.on("error", () => outgoing.destroy());
  socket.on("close", () => outgoing.destroy());
  outgoing.end();
}

function rawHead({ statusCode, statusMessage }: IncomingMessage, headers: RawHeaders): string {
  const lines = headers.map((text, i) => (i % 2 === 0 ? `${text}: ` : `${text}\r\n`));
  return `HTTP/1.1 ${statusCode} ${statusMessage}\r\n${lines.join("")}\r\n`;
}

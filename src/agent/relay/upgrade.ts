/** Requests by which a connection becomes something else: a terminal in a job, by websocket. */
import type { IncomingMessage } from "node:http";
import { type Duplex, pipeline } from "node:stream";
import { contentLength, type RawHeaders, valuesOf, without } from "./headers.ts";
import { answerHeaders, isOdd, requestHeaders } from "./proxy.ts";
import type { Upstream } from "./upstream.ts";

/** RFC 6455 §4.1. Nothing else becomes a connection that nobody looks into. */
export function asksForWebSocket(message: IncomingMessage): boolean {
  return message.method === "GET" && contentLength(message) === 0 && isWebSocket(message);
}

function isWebSocket({ rawHeaders }: IncomingMessage): boolean {
  return valuesOf(rawHeaders, "upgrade").join().toLowerCase() === "websocket";
}

/**
 * What asks for any other upgrade, as it came but for the asking: a server may always decline one
 * (RFC 9110 §7.8). Node stops reading at the head of such a request, so it has to be read anew.
 *
 * @param first what came after the head
 */
export function declined(message: IncomingMessage, first: Uint8Array): Uint8Array {
  const { method, url, httpVersion, rawHeaders } = message;
  const headers = without(rawHeaders, new Set(["upgrade"]));
  return Buffer.concat([rawHead(`${method} ${url} HTTP/${httpVersion}`, headers), first]);
}

/** The connection becomes whatever both sides agree upon. */
export function forwardUpgrade(
  upstream: Upstream,
  incoming: IncomingMessage,
  socket: Duplex,
  first: Uint8Array,
): void {
  const headers = [...requestHeaders(incoming), "Connection", "Upgrade", "Upgrade", "websocket"];
  const outgoing = upstream.open("GET", incoming.url ?? "", headers);
  const refuse = (): void => {
    socket.end(rawHead("HTTP/1.1 502 Bad Gateway", ["Content-Length", "0", "Connection", "close"]));
  };
  let isAnswered = false;
  outgoing.on("upgrade", (answer, far, farFirst) => {
    isAnswered = true;
    far.on("timeout", () => far.destroy());
    if (!isWebSocket(answer)) {
      far.destroy();
      refuse();
      return;
    }
    socket.write(answerHead(answer, answer.rawHeaders));
    socket.write(farFirst);
    far.write(first);
    pipeline(socket, far, () => undefined);
    pipeline(far, socket, () => undefined);
  });
  outgoing.on("response", (answer) => {
    if (isOdd(answer)) {
      outgoing.destroy();
      return;
    }
    isAnswered = true;
    // By a raw socket, the end of the connection is the end of the content.
    socket.write(answerHead(answer, [...answerHeaders(answer), "Connection", "close"]));
    pipeline(answer, socket, () => undefined);
  });
  outgoing.on("error", () => undefined); // its close says the same
  outgoing.on("close", () => {
    if (!isAnswered) refuse();
  });
  socket.on("error", () => outgoing.destroy());
  socket.on("close", () => outgoing.destroy());
  outgoing.end();
}

function answerHead({ statusCode, statusMessage }: IncomingMessage, headers: RawHeaders): Buffer {
  return rawHead(`HTTP/1.1 ${statusCode} ${statusMessage}`, headers);
}

/** Byte by byte, as Node reads it. No name or value that it read has an end of line in it. */
function rawHead(line: string, headers: RawHeaders): Buffer {
  const lines = headers.map((text, i) => (i % 2 === 0 ? `${text}: ` : `${text}\r\n`));
  return Buffer.from(`${line}\r\n${lines.join("")}\r\n`, "latin1");
}

/**
 * A reverse proxy that adds and takes nothing. By node:http alone: between a Request and a Response of
 * fetch, as frameworks have them, the case, order and repetition of headers, 100-continue, upgrades and
 * the moment of an abort are lost.
 */
import type { ClientRequest, IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream";
import { errnoOf } from "../failure.ts";
import { contentLength, endToEnd, type RawHeaders, valuesOf, without } from "./headers.ts";
import type { Upstream } from "./upstream.ts";

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

const NOTHING = new Uint8Array();
/** RFC 9112 §3.2.1. Any other form names a host of its own, and this is a proxy for one only. */
const ORIGIN_FORM = /^\/[^#]*$/;

export function forward(
  upstream: Upstream,
  incoming: IncomingMessage,
  response: ServerResponse,
  watcher: Watcher,
): void {
  const { method = "", url = "" } = incoming;
  const length = contentLength(incoming);
  if (length === undefined || !ORIGIN_FORM.test(url)) {
    refuse(response, 400, "The relay does not pass on what can be read in two ways.");
    return;
  }
  const outgoing = upstream.open(method, url, requestHeaders(incoming));
  let isAnswered = false;
  outgoing.on("continue", () => {
    if (expectsContinue(incoming)) response.writeContinue();
  });
  outgoing.on("response", (answer) => {
    if (isOdd(answer)) {
      outgoing.destroy();
      return;
    }
    isAnswered = true;
    pass(answer, response, watcher).catch(() => response.destroy());
  });
  // What breaks off after that, the answer itself knows of; and if it is whole, it is GitLab's answer.
  outgoing.on("error", (error) => {
    if (!isAnswered) refuseUnreachable(response, error);
  });
  outgoing.on("close", () => {
    if (!isAnswered) refuseUnreachable(response);
  });
  // Whoever went away is waited for by nobody.
  response.on("close", () => {
    if (!response.writableFinished) outgoing.destroy();
    watcher.ended?.(response.writableFinished);
  });
  send(incoming, outgoing, length, watcher);
}

/** The content of a request: never a byte more or less than was announced, as that would be another request. */
function send(
  incoming: IncomingMessage,
  outgoing: ClientRequest,
  length: number,
  watcher: Watcher,
): void {
  let left = length;
  const write = (chunk: Uint8Array): boolean => outgoing.destroyed || outgoing.write(chunk);
  incoming.on("data", (chunk: Uint8Array) => {
    watcher.sent?.(chunk);
    left -= chunk.length;
    if (left < 0) outgoing.destroy();
    incoming.pause();
    afterReading(() => {
      if (write(chunk)) incoming.resume();
    });
  });
  outgoing.on("drain", () => incoming.resume());
  // What GitLab wants no more is read all the same: many a client reads the answer only after it.
  outgoing.on("close", () => incoming.resume());
  incoming.on("end", () => {
    watcher.asked?.();
    afterReading(() => {
      if (left === 0 || length === Number.POSITIVE_INFINITY) outgoing.end();
      else outgoing.destroy();
    });
  });
}

/**
 * In turn, and after what has arrived was read: Node gives a connection up at the first write that fails,
 * and with it the early 413 of a GitLab that then closed on the upload. The first turn of the event loop is
 * busy with the sender, the second with GitLab alone: of 20 such answers 17 arrived, 14 with one turn, 6
 * with none.
 */
function afterReading(act: () => void): void {
  setImmediate(() => setImmediate(act));
}

async function pass(
  answer: IncomingMessage,
  response: ServerResponse,
  watcher: Watcher,
): Promise<void> {
  const status = answer.statusCode ?? 0;
  const came = answerHeaders(answer);
  const headers = (await watcher.head?.({ status, headers: came })) ?? came;
  if (response.destroyed) return;
  response.sendDate = false;
  response.writeHead(status, answer.statusMessage, [...headers]);
  // At once, as an answer may begin long before its first byte of content. And not by flushHeaders, which
  // would write them in UTF-8 where Node reads them, byte by byte, as Latin-1.
  response.write(NOTHING);
  answer.on("data", (chunk: Uint8Array) => watcher.answered?.(chunk));
  answer.on("end", () => watcher.complete?.());
  pipeline(answer, response, () => undefined); // what broke off here breaks off there
}

/** The framing is this connection's own, so it is said anew, by what was read and not by what was named. */
export function requestHeaders({ rawHeaders, method = "" }: IncomingMessage): string[] {
  const headers = endToEnd(rawHeaders);
  if (valuesOf(rawHeaders, "transfer-encoding").length > 0) {
    return [...headers, "Transfer-Encoding", "chunked"];
  }
  const isSilent = valuesOf(headers, "content-length").length === 0;
  // RFC 9110 §8.6; Node would announce chunks.
  return isSilent && !CONTENTLESS.has(method) ? [...headers, "Content-Length", "0"] : headers;
}

const CONTENTLESS = new Set(["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"]);

/** Chunks are said anew by Node, and so is the end of the connection where it ends the content. */
export function answerHeaders({ rawHeaders, statusCode }: IncomingMessage): string[] {
  const headers = endToEnd(rawHeaders);
  return statusCode === 204 ? without(headers, new Set(["content-length"])) : headers; // RFC 9110 §8.6
}

/** No final answer, or one whose content another parser may end elsewhere. */
export function isOdd(answer: IncomingMessage): boolean {
  return (answer.statusCode ?? 0) < 200 || contentLength(answer) === undefined;
}

/** Whoever does not, and HTTP/1.0, would take the 100 for the answer. */
function expectsContinue({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  return (
    httpVersion === "1.1" &&
    valuesOf(rawHeaders, "expect").some((value) => value.toLowerCase() === "100-continue")
  );
}

/** 502, which gitlab-runner tries again by itself. */
function refuseUnreachable(response: ServerResponse, error?: Error): void {
  refuse(response, 502, `The relay cannot reach GitLab (${errnoOf(error) ?? "no answer"}).`);
}

function refuse(response: ServerResponse, status: 400 | 502, sentence: string): void {
  if (response.headersSent || response.destroyed) return;
  // Where a request's content ends is in doubt after a 400: then nothing more is read.
  if (status === 400) response.shouldKeepAlive = false;
  const text = `${sentence}\n`;
  response.writeHead(status, { "content-type": "text/plain", "content-length": text.length });
  response.end(text);
}

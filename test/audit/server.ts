/** A log's server as the standard has it, over an archive in memory, and as dishonest as a test wants it. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import type { Files } from "./archive.ts";
import { LOG_ID } from "./log.ts";

/** Answers a path of the log itself, or leaves it to the honest server by answering nothing. */
export type Lie = (path: string, answer: ServerResponse, ask: IncomingMessage) => boolean;

export interface LogServer {
  url: string;
  /** Paths that were asked for, in their order. */
  asked: string[];
  close(): Promise<void>;
}

/** `sizes`: of the archived checkpoints that it lists; without, it has only the standard. */
export async function serveFiles(
  files: Files,
  { log = LOG_ID, sizes, lie = () => false }: { log?: string; sizes?: number[]; lie?: Lie } = {},
): Promise<LogServer> {
  const asked: string[] = [];
  const server = createServer((ask, answer) => {
    const { pathname, searchParams } = new URL(ask.url ?? "", "http://localhost");
    // `/logs/LOG/…` is the standard's; what comes from `/v1/logs/LOG/…` keeps a slash before it.
    const path = pathname.replace(`/logs/${log}/`, "");
    asked.push(path);
    if (lie(path, answer, ask)) return;
    if (path === "/v1checkpoints" && sizes !== undefined) {
      const after = Number(searchParams.get("after") ?? -1);
      const page = sizes.filter((size) => size > after).slice(0, 2);
      const more = page.length === 2 && { next: String(page[1]) };
      answer.end(JSON.stringify({ sizes: page.map(String), ...more }));
      return;
    }
    const newest = Math.max(...sizesOf(files));
    send(answer, files.get(path === "checkpoint" ? `checkpoint/${newest}` : path), path);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/logs/${log}`,
    asked,
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}

function sizesOf(files: Files): number[] {
  return [...files.keys()]
    .filter((path) => path.startsWith("checkpoint/"))
    .map((path) => Number(path.slice("checkpoint/".length)));
}

function send(answer: ServerResponse, bytes: Uint8Array | undefined, path: string): void {
  if (bytes === undefined) {
    answer.writeHead(404).end();
    return;
  }
  const bundle = path.startsWith("tile/entries/");
  const type = path.startsWith("tile/") ? "application/octet-stream" : "text/plain; charset=utf-8";
  answer.writeHead(200, { "content-type": type, ...(bundle && { "content-encoding": "gzip" }) });
  answer.end(bundle ? gzipSync(bytes) : bytes);
}

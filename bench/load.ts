/**
 * A keep-alive HTTP/1.1 client with as little cost of its own as possible: on two shared cores a
 * comfortable client would be what is measured.
 */
import { connect, type Socket } from "node:net";

interface Connection {
  socket: Socket;
  exchange(request: Buffer): Promise<{ status: number; body: string }>;
}

/** What went over the wire; latencies in milliseconds, one for each request. */
export interface LoadResult {
  latencies: number[];
  bodies: string[];
}

/**
 * One POST with its headers, ready to be written.
 * @param token a bearer's, where the route asks for one
 */
export function post(url: URL, contentType: string, body: string, token?: string): Buffer {
  const head = [
    `POST ${url.pathname} HTTP/1.1`,
    `host: ${url.host}`,
    `content-type: ${contentType}`,
    `content-length: ${Buffer.byteLength(body)}`,
    ...(token === undefined ? [] : [`authorization: Bearer ${token}`]),
  ];
  return Buffer.from(`${head.join("\r\n")}\r\n\r\n${body}`);
}

/**
 * Sends all requests over `connections` sockets, each waiting for its answer before the next.
 * @throws Error on any status outside 2xx: a benchmark of errors measures nothing
 */
export async function load(
  url: URL,
  requests: readonly Buffer[],
  connections: number,
): Promise<LoadResult> {
  const pool = await Promise.all(Array.from({ length: connections }, () => open(url)));
  const result: LoadResult = { latencies: [], bodies: [] };
  let next = 0;
  const run = async (connection: Connection): Promise<void> => {
    for (let i = next++; i < requests.length; i = next++) {
      const request = requests[i];
      if (request === undefined) return;
      const start = process.hrtime.bigint();
      const { status, body } = await connection.exchange(request);
      if (status >= 300) throw new Error(`status ${status}: ${body.slice(0, 300)}`);
      result.latencies.push(Number(process.hrtime.bigint() - start) / 1e6);
      result.bodies.push(body);
    }
  };
  await Promise.all(pool.map(run));
  for (const { socket } of pool) socket.destroy();
  return result;
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((x, y) => x - y);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

async function open(url: URL): Promise<Connection> {
  const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true });
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  let received: Buffer = Buffer.alloc(0);
  let waiting: { resolve(answer: { status: number; body: string }): void; reject(e: Error): void };
  socket.on("data", (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    const answer = parse(received);
    if (answer === undefined) return;
    received = Buffer.alloc(0);
    waiting.resolve(answer);
  });
  socket.on("error", (error) => waiting?.reject(error));
  socket.on("close", () => waiting?.reject(new Error("connection closed")));
  const exchange = (request: Buffer): Promise<{ status: number; body: string }> =>
    new Promise((resolve, reject) => {
      waiting = { resolve, reject };
      socket.write(request);
    });
  return { socket, exchange };
}

/** A whole answer with content-length, or undefined while bytes are missing. */
function parse(bytes: Buffer): { status: number; body: string } | undefined {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const head = bytes.toString("latin1", 0, end);
  const length = Number(/content-length: *([0-9]+)/i.exec(head)?.[1] ?? Number.NaN);
  if (Number.isNaN(length)) throw new Error(`no content-length in: ${head}`);
  if (bytes.length < end + 4 + length) return undefined;
  return { status: Number(head.slice(9, 12)), body: bytes.toString("utf8", end + 4) };
}

/** Rows as the CSV lines that PostgreSQL itself writes: three times as fast as to write them here. */
import { Readable } from "node:stream";
import type { Transaction } from "./connect.ts";

/**
 * Pieces of a table, each read while the one before is used: two of them are in memory. Whoever stops early
 * leaves the connection as it was, when the piece under way has ended.
 *
 * @param queries take no parameters, as COPY takes none; asked for while the connection is free
 */
export async function* copyPieces(
  tx: Transaction,
  queries: AsyncIterator<string>,
): AsyncGenerator<Buffer> {
  let ahead: Promise<Buffer> | undefined;
  try {
    for (;;) {
      const piece = await ahead;
      const { done, value } = await queries.next();
      ahead = done ? undefined : copy(tx, value);
      // It may fail while nobody waits for it yet.
      ahead?.catch(() => undefined);
      if (piece !== undefined) yield piece;
      if (done) return;
    }
  } finally {
    await ahead?.catch(() => undefined);
  }
}

/** To its end always: postgres.js has no way to leave a COPY that is under way. */
async function copy(tx: Transaction, query: string): Promise<Buffer> {
  const copying = tx.unsafe(`copy (${query}) to stdout (format csv)`);
  hearErrors(copying);
  const stream = await copying.readable();
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  // postgres.js 3.4.9 pauses its socket when lines come faster than they are read, and goes on at the next read.
  // After the last line there is none: what the server says next would never be heard.
  stream._read(0);
  return Buffer.concat(chunks);
}

/**
 * An error that comes with the first lines is told to the stream before a promise hands the stream on: nobody
 * could listen by then, which ends the process. So somebody does where postgres.js hands it to the promise; what
 * reads the stream afterwards has the error all the same.
 */
function hearErrors(copying: object): void {
  const resolve: unknown = Reflect.get(copying, "resolve");
  if (typeof resolve !== "function") throw new Error("copy: not a query of postgres.js 3.4.9");
  Reflect.set(copying, "resolve", (outcome: unknown) => {
    if (outcome instanceof Readable) outcome.on("error", () => undefined);
    resolve(outcome);
  });
}

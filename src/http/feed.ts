/** The feed of the Customers Portal: a page, or lines as they come; and its acknowledgements. */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { Problem } from "../core/problem.ts";
import { acknowledge } from "../flow/feed/acknowledge.ts";
import { type FeedPage, type FeedReader, feed, follow } from "../flow/feed/read.ts";
import { preferred } from "./accept.ts";
import { assertLog, callerOf, isPerson } from "./access.ts";
import { answer, answerReceipt } from "./answer.ts";
import type { Services } from "./app.ts";
import { parsed, readJson } from "./body.ts";
import { FeedSearch, LogAcknowledgement } from "./operations/shapes.ts";
import type { Router } from "./router.ts";
import type { Stream } from "./streams.ts";

const SECOND = 1_000;
const READING = "GET /v1/feed";

export function feedRoutes(router: Router, services: Services): void {
  const { control, feeding, gate, streams } = services;

  router.guarded(READING, async ({ incoming, query }, caller) => {
    const { log, cursor, limit, wait_s } = parsed(FeedSearch, query());
    assertLog(caller, log);
    const { accept, authorization } = incoming.headers;
    const search = { log, cursor: BigInt(cursor), limit, waitMs: wait_s * SECOND };
    const readerUntil = (signal: AbortSignal): FeedReader => ({
      ...{ id: caller.id, signal },
      assertMayRead: async () => {
        const reader = await gate.authenticate(authorization);
        assertLog(callerOf(READING, reader, gate.accesses), log);
      },
    });
    const types = ["application/json", "application/x-ndjson"] as const;
    if (preferred(accept, types) === "application/json") {
      return answer(200, await feed(feeding, search, readerUntil(departure(incoming))));
    }
    const stream = streams.open(caller.id, incoming.socket);
    const pages = follow(feeding, search, readerUntil(stream.signal));
    return await answerLines(incoming, stream, pages);
  });

  router.guarded("POST /v1/feed/ack", async (ask, caller) => {
    const { log, ...input } = await readJson(ask, LogAcknowledgement);
    assertLog(caller, log);
    const { differing, months, ...receipt } = await acknowledge(
      { ...control, archive: feeding.archive },
      { log, by: caller.id, isPerson: await isPerson(caller, log) },
      input,
    );
    return answerReceipt(receipt, { months, differing });
  });
}

/** By connection, over which many pages are asked for: one listener is enough for all of them. */
const departures = new WeakMap<Socket, AbortSignal>();

/** Nobody reads the answer any more. */
function departure({ socket }: IncomingMessage): AbortSignal {
  const known = departures.get(socket);
  if (known !== undefined) return known;
  const gone = new AbortController();
  socket.once("close", () => gone.abort());
  departures.set(socket, gone.signal);
  return gone.signal;
}

/** The first page comes before the answer: what is wrong with the question is said by a status. */
async function answerLines(
  { method }: IncomingMessage,
  stream: Stream,
  pages: AsyncGenerator<FeedPage>,
): Promise<Response> {
  const first = await pages.next().catch((error: unknown) => {
    stream.done();
    throw error;
  });
  // Of a HEAD nobody takes the body, and what is not begun never comes to its end.
  if (method === "HEAD") stream.done();
  return new Response(ReadableStream.from(lines(first, pages, stream)), {
    headers: { "content-type": "application/x-ndjson", "cache-control": "no-store" },
  });
}

const encoder = new TextEncoder();

/** A page at a time, when it is asked for: a reader that is slow has nothing gathered for it. */
async function* lines(
  first: IteratorResult<FeedPage, void>,
  pages: AsyncGenerator<FeedPage>,
  { done }: Stream,
): AsyncGenerator<Uint8Array> {
  try {
    for (let page = first; !page.done; page = await pages.next()) {
      const { as_of, events, next_cursor } = page.value;
      const texts = [...events, { as_of, next_cursor }].map((line) => `${JSON.stringify(line)}\n`);
      yield encoder.encode(texts.join(""));
    }
  } catch (error) {
    // The status is sent: it ends behind a whole page, and whoever goes on from there is told why.
    if (!(error instanceof Problem)) throw error;
  } finally {
    done();
  }
}

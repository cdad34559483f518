/** Answers that go on for long: who has how many, and that each of them ends, whether or not it is read. */
import type { Socket } from "node:net";
import { Problem } from "../core/problem.ts";

export interface Stream {
  /** Whoever writes it is to come to an end; also when nobody reads it any more. */
  readonly signal: AbortSignal;
  /** It is written. */
  done(): void;
}

export interface Streams {
  /**
   * One more for this principal, over this connection.
   *
   * @throws Problem `busy`: they have as many as may be
   */
  open(id: string, socket: Socket): Stream;
  /**
   * A file goes over this connection, however long that takes: it is closed when nothing of the file was taken for
   * as long as a stream may last.
   */
  watch(socket: Socket): void;
  /** All of them come to an end, and so does each that is opened from now on. */
  close(): void;
}

const STREAMS_OF_ONE_MAX = 20;
/**
 * Long enough for whoever has much to catch up with, and for a bucket to be asked again in the middle of a file;
 * and no longer than a token may be old.
 */
const STREAM_MS_MAX = 300_000;
/** Whoever has not read the end of it by then does not read: their connection is closed. */
const END_MS_MAX = 1_000;

interface Open {
  readonly id: string;
  end(): void;
}

/** @param streamMs what is over after so long is ended, and so is a file of which nothing is taken for so long */
export function openStreams(streamMs = STREAM_MS_MAX): Streams {
  const streams = new Set<Open>();
  let closed = false;
  return {
    open: (id, socket) => {
      const own = Array.from(streams).filter((stream) => stream.id === id);
      if (own.length >= STREAMS_OF_ONE_MAX) throw new Problem("busy");
      const ending = new AbortController();
      let late: NodeJS.Timeout | undefined;
      const end = (): void => {
        ending.abort();
        late ??= setTimeout(() => socket.destroy(), END_MS_MAX);
      };
      const over = setTimeout(end, streamMs);
      const done = (): void => {
        clearTimeout(over);
        clearTimeout(late);
        socket.off("close", gone);
        streams.delete(stream);
      };
      const gone = (): void => {
        ending.abort();
        done();
      };
      socket.once("close", gone);
      const stream = { id, end };
      streams.add(stream);
      if (closed) end();
      return { signal: ending.signal, done };
    },
    // Node closes it, and sets the limit that it has between two requests when the answer is written.
    watch: (socket) => void socket.setTimeout(streamMs),
    close: () => {
      closed = true;
      for (const { end } of streams) end();
    },
  };
}

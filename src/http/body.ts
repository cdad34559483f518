/**
 * Bodies read from Node's own stream, with a cap while reading: a web stream, as hono/body-limit makes
 * one, costs eight times as much as all the rest of a small request.
 */

import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { z } from "zod";
import { misfits, REPORTING } from "../core/misfit.ts";
import { Problem } from "../core/problem.ts";
import { Gathered } from "./gathered.ts";
import { membersKept, membersNamed } from "./json.ts";
import type { Place, Room } from "./room.ts";

const MEDIA_TYPE = /^application\/(json|jose)(?:\s*;\s*charset=utf-8)?$/i;
/** Of bodies that are no reports. */
export const CONTROL_BYTES_MAX = 128 * 1024;
/** Outside of strings: a thousand questions with all members, indented, are 120,000. */
const LETTERS_MAX = 256 * 1024;
/** Of up to 500 signed texts, which anybody may send: their quotes and commas are 1,500. */
export const BATCH_LETTERS_MAX = 16 * 1024;

/** @throws Problem `unsupported-media-type`, for a coded (compressed) body too */
export function mediaType({ headers }: IncomingMessage): "json" | "jose" {
  const type = MEDIA_TYPE.exec(headers["content-type"] ?? "")?.[1]?.toLowerCase();
  const coding = headers["content-encoding"] ?? "identity";
  if (type === undefined || coding !== "identity") throw new Problem("unsupported-media-type");
  return type as "json" | "jose";
}

/** A request of which nothing but the head was read. */
export interface Unread {
  readonly incoming: IncomingMessage;
  readonly room: Room;
}

/**
 * The whole body as text.
 * @param max bytes
 * @throws Problem `too-large`, before anything is read where the length is declared; `busy`;
 *   `body-too-slow`; `invalid-request` for bytes that are no UTF-8, and when the client goes away
 */
export async function readText(unread: Unread, max: number): Promise<string> {
  const { incoming } = unread;
  if (Number(incoming.headers["content-length"] ?? 0) > max) throw new Problem("too-large");
  // Gone while its token was looked at: no event would ever say so again.
  if (incoming.destroyed) throw new Problem("invalid-request");
  const bytes = await readBytes(unread, max);
  if (!isUtf8(bytes)) throw new Problem("invalid-request");
  return bytes.toString("utf8");
}

function readBytes({ incoming, room }: Unread, max: number): Promise<Buffer> {
  const gathered = new Gathered();
  let late: NodeJS.Timeout | undefined;
  let place: Place | undefined;
  const read = new Promise<Buffer>((resolve, reject) => {
    // Comes after every request: an error, whose stack costs more than all else here, only if needed.
    const gone = (): void => {
      if (!incoming.readableEnded) reject(new Problem("invalid-request"));
    };
    incoming.on("data", (chunk: Buffer) => {
      late ??= setTimeout(() => reject(new Problem("body-too-slow")), room.ms);
      place ??= room.enter(incoming.socket.remoteAddress ?? "", reject);
      if (gathered.length + chunk.length > max) return reject(new Problem("too-large"));
      try {
        place.take(chunk.length);
        gathered.add(chunk);
      } catch (error) {
        reject(error);
      }
    });
    incoming.once("end", () => resolve(gathered.bytes()));
    incoming.once("error", gone);
    incoming.once("close", gone);
  });
  return read.finally(() => {
    clearTimeout(late);
    // What still comes is read to nowhere, so that the client hears the answer.
    incoming.removeAllListeners("data").resume();
    place?.leave();
  });
}

/** A JSON body of exactly this shape: no member twice, none unknown, none hidden. */
export async function readJson<T extends z.ZodType>(
  unread: Unread,
  shape: T,
  max = CONTROL_BYTES_MAX,
): Promise<z.infer<T>> {
  if (mediaType(unread.incoming) !== "json") throw new Problem("unsupported-media-type");
  const text = await readText(unread, max);
  return parsed(shape, parseStrict(text));
}

/** @throws Problem `invalid-request`, naming the members that do not fit, and how */
export function parsed<T extends z.ZodType>(shape: T, value: unknown): z.infer<T> {
  const { data, error, success } = shape.safeParse(value, REPORTING);
  if (success) return data;
  throw new Problem("invalid-request", misfits(error));
}

/** Before the shape is asked: too many is no fault of form. @throws Problem `too-many` */
export function assertCount(value: unknown, member: string, max: number): void {
  const list: unknown = Object.entries(value ?? {}).find(([name]) => name === member)?.[1];
  if (Array.isArray(list) && list.length > max) throw new Problem("too-many");
}

/**
 * @throws Problem `invalid-request` for what is no JSON, names a member twice, or `__proto__`, or would cost more
 *   than its length to be read
 */
export function parseStrict(text: string, lettersMax = LETTERS_MAX): unknown {
  const members = membersNamed(text, lettersMax);
  if (members === undefined) throw new Problem("invalid-request");
  const value = parsedJson(text);
  if (membersKept(value) !== members) throw new Problem("invalid-request");
  return value;
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Problem("invalid-request");
  }
}

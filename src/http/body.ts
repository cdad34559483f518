/**
 * Bodies read from Node's own stream, with a cap while reading: a web stream, as hono/body-limit makes
 * one, costs eight times as much as all the rest of a small request.
 */

import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { z } from "zod";
import { Problem } from "../core/problem.ts";
import type { Intake } from "../flow/intake.ts";
import { repeatsMember } from "./json.ts";

const MEDIA_TYPE = /^application\/(json|jose)(?:\s*;\s*charset=utf-8)?$/i;
/** Of bodies that are no reports. */
export const CONTROL_BYTES_MAX = 128 * 1024;

/** @throws Problem `unsupported-media-type`, for a coded (compressed) body too */
export function mediaType({ headers }: IncomingMessage): "json" | "jose" {
  const type = MEDIA_TYPE.exec(headers["content-type"] ?? "")?.[1]?.toLowerCase();
  const coding = headers["content-encoding"] ?? "identity";
  if (type === undefined || coding !== "identity") throw new Problem("unsupported-media-type");
  return type as "json" | "jose";
}

/** What all bodies that are being read may take together; `enter` throws Problem `busy`. */
export type Room = Pick<Intake, "enter">;

const ENDLESS: Room = { enter: () => () => undefined };

/**
 * The whole body as text.
 * @param max bytes
 * @param room taken as the bytes come, not as they are promised: a slow client blocks nobody
 * @throws Problem `too-large`, before anything is read where the length is declared; `busy`;
 *   `invalid-request` for bytes that are no UTF-8, and when the client goes away
 */
export async function readText(
  incoming: IncomingMessage,
  max: number,
  room: Room = ENDLESS,
): Promise<string> {
  if (Number(incoming.headers["content-length"] ?? 0) > max) throw new Problem("too-large");
  // Gone while its token was looked at: no event would ever say so again.
  if (incoming.destroyed) throw new Problem("invalid-request");
  const bytes = await readBytes(incoming, max, room);
  if (!isUtf8(bytes)) throw new Problem("invalid-request");
  return bytes.toString("utf8");
}

function readBytes(incoming: IncomingMessage, max: number, room: Room): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const held: (() => void)[] = [];
  let length = 0;
  const read = new Promise<Buffer>((resolve, reject) => {
    // Comes after every request: an error, whose stack costs more than all else here, only if needed.
    const gone = (): void => {
      if (!incoming.readableEnded) reject(new Problem("invalid-request"));
    };
    incoming.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length > max) return reject(new Problem("too-large"));
      try {
        held.push(room.enter(0, chunk.length));
        chunks.push(chunk);
      } catch (error) {
        reject(error);
      }
    });
    incoming.once("end", () => {
      resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, length));
    });
    incoming.once("error", gone);
    incoming.once("close", gone);
  });
  return read.finally(() => {
    // What still comes is read to nowhere, so that the client hears the answer.
    incoming.removeAllListeners("data").resume();
    for (const leave of held) leave();
  });
}

/** A JSON body of exactly this shape: no member twice, none unknown. */
export async function readJson<T extends z.ZodType>(
  incoming: IncomingMessage,
  shape: T,
): Promise<z.infer<T>> {
  if (mediaType(incoming) !== "json") throw new Problem("unsupported-media-type");
  const text = await readText(incoming, CONTROL_BYTES_MAX);
  return parsed(shape, parseStrict(text));
}

/** @throws Problem `invalid-request`, naming the members that do not fit */
export function parsed<T extends z.ZodType>(shape: T, value: unknown): z.infer<T> {
  const { data, error, success } = shape.safeParse(value);
  if (success) return data;
  const members = error.issues.map(({ path }) => path.join("."));
  throw new Problem("invalid-request", { members: [...new Set(members)] });
}

/** @throws Problem `invalid-request` for what is no JSON, or names a member twice */
export function parseStrict(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Problem("invalid-request");
  }
  if (repeatsMember(text)) throw new Problem("invalid-request");
  return value;
}

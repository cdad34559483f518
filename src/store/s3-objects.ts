/** Objects in an S3-compatible bucket: each request with a time limit, checksums and bounded retries. */
import { hash } from "node:crypto";
import { addAbortSignal, Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import {
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  type S3ClientConfig,
} from "@aws-sdk/client-s3";
import { ArchiveError } from "./archive.ts";

export interface Lock {
  mode: "COMPLIANCE" | "GOVERNANCE";
  until: Date;
}

/** Every method throws ArchiveError `archive-unavailable` when the store cannot be brought to answer. */
export interface S3Objects {
  /** Stores an object unless there is one under this key; exactly one of many at once does. */
  create(key: string, bytes: Uint8Array, lock?: Lock): Promise<"created" | "exists">;
  read(key: string): Promise<Uint8Array | undefined>;
  /** What follows `prefix` in the keys that begin with it, a page at a time. */
  names(prefix: string): AsyncGenerator<string[]>;
  /** What follows `prefix` up to the next slash, each once, a page at a time. */
  folders(prefix: string): AsyncGenerator<string[]>;
  /** What the store refuses to remove stays. */
  remove(keys: readonly string[]): Promise<void>;
  lock(key: string): Promise<Lock | undefined>;
}

export interface S3Patience {
  attempts: number;
  /** Of one request, body included. */
  attemptMs: number;
  /** Before the second attempt; doubled before each further one. */
  pauseMs: number;
  /** Of all attempts together. */
  totalMs: number;
}

/**
 * A seal may idle in its transaction for a minute, and between two of its statements no more than four
 * calls follow each other: create and read of tiles, then of the claim. A seal that is slower all the
 * same loses its transaction and signs nothing; the next one goes on from what is archived.
 */
export const PATIENCE: S3Patience = {
  attempts: 4,
  attemptMs: 10_000,
  pauseMs: 100,
  totalMs: 14_000,
};
/** A full bundle of the largest entries is a little over 16 MiB. */
const OBJECT_BYTES_MAX = 17 * 1024 * 1024;
/** S3: in one request. */
const REMOVED_MAX = 1_000;

export function s3Objects(
  bucket: string,
  config: S3ClientConfig,
  patience: S3Patience = PATIENCE,
): S3Objects {
  const client = s3Client(config);
  const attempting = <T>(request: (signal: AbortSignal) => Promise<T>): Promise<T> =>
    persistently(request, patience);
  const pages = async function* (what: { Prefix: string; Delimiter?: string }) {
    let ContinuationToken: string | undefined;
    do {
      const list = new ListObjectsV2Command({ Bucket: bucket, ...what, ContinuationToken });
      const page = await attempting((abortSignal) => client.send(list, { abortSignal }));
      yield page;
      ContinuationToken = page.NextContinuationToken;
    } while (ContinuationToken !== undefined);
  };

  return {
    create: (Key, Body, lock) => {
      const put = new PutObjectCommand({
        ...{ Bucket: bucket, Key, Body, IfNoneMatch: "*", ChecksumAlgorithm: "SHA256" },
        ChecksumSHA256: hash("sha256", Body, "base64"),
        ObjectLockMode: lock?.mode,
        ObjectLockRetainUntilDate: lock?.until,
      });
      return attempting((abortSignal) =>
        unlessStatus(412, client.send(put, { abortSignal })).then((stored) =>
          stored === undefined ? "exists" : "created",
        ),
      );
    },

    read: (Key) =>
      attempting(async (abortSignal) => {
        // The client compares the body with the checksum that was stored with it.
        const get = new GetObjectCommand({ Bucket: bucket, Key, ChecksumMode: "ENABLED" });
        const found = await unlessAbsent(client.send(get, { abortSignal }));
        return found && (await bodyOf(found.Body, abortSignal));
      }),

    names: async function* (prefix) {
      for await (const { Contents = [] } of pages({ Prefix: prefix })) {
        yield Contents.map(({ Key = "" }) => Key.slice(prefix.length));
      }
    },

    folders: async function* (prefix) {
      for await (const { CommonPrefixes = [] } of pages({ Prefix: prefix, Delimiter: "/" })) {
        yield CommonPrefixes.map(({ Prefix = "" }) => Prefix.slice(prefix.length, -1));
      }
    },

    remove: async (keys) => {
      for (let start = 0; start < keys.length; start += REMOVED_MAX) {
        const Objects = keys.slice(start, start + REMOVED_MAX).map((Key) => ({ Key }));
        const remove = new DeleteObjectsCommand({
          ...{ Bucket: bucket, ChecksumAlgorithm: "SHA256" },
          Delete: { Objects, Quiet: true },
        });
        await attempting(async (abortSignal) => {
          const answer = await unlessStatus(403, client.send(remove, { abortSignal }));
          const failed = answer?.Errors?.find(({ Code }) => Code !== "AccessDenied");
          if (failed !== undefined) throw new Error(`s3: ${failed.Key}: ${failed.Code}`);
        });
      }
    },

    lock: (Key) =>
      attempting(async (abortSignal) => {
        const head = new HeadObjectCommand({ Bucket: bucket, Key });
        const found = await unlessStatus(404, client.send(head, { abortSignal }));
        const { ObjectLockMode: mode, ObjectLockRetainUntilDate: until } = found ?? {};
        return mode === undefined || until === undefined ? undefined : { mode, until };
      }),
  };
}

export function s3Client(config: S3ClientConfig): S3Client {
  return new S3Client({
    ...config,
    // `persistently` retries what the client would, and also bodies that are cut.
    maxAttempts: 1,
    requestChecksumCalculation: "WHEN_REQUIRED",
  });
}

/**
 * @param stop ends the attempt that is under way, as the last one
 * @throws ArchiveError `archive-unavailable` with the last failure as its cause
 */
export async function persistently<T>(
  request: (signal: AbortSignal) => Promise<T>,
  { attempts, attemptMs, pauseMs, totalMs }: S3Patience,
  stop?: AbortSignal,
): Promise<T> {
  const end = performance.now() + totalMs;
  for (let attempt = 1; ; attempt += 1) {
    const leftMs = Math.max(0, Math.floor(end - performance.now()));
    const late = AbortSignal.timeout(Math.min(attemptMs, leftMs));
    try {
      return await request(stop === undefined ? late : AbortSignal.any([late, stop]));
    } catch (error) {
      const pause = pauseMs * 2 ** (attempt - 1);
      const isLast = attempt === attempts || performance.now() + pause >= end;
      if (isLast || stop?.aborted || !mayPass(error)) throw unavailable(error);
      await delay(pause, undefined, { signal: stop }).catch(() => undefined);
    }
  }
}

function unavailable(error: unknown): ArchiveError {
  const said = mayPass(error) ? "cannot be reached" : `refuses: ${nameOf(error)}`;
  return new ArchiveError("archive-unavailable", `the archive ${said}`, error);
}

/** Everything but a plain refusal: no answer at all, a body that was cut, a clash, overload. */
export function mayPass(error: unknown): boolean {
  const status = statusOf(error);
  if (nameOf(error) === "RequestTimeTooSkewed") return true; // the client has learnt the time from it
  return status === undefined || [408, 409, 429].includes(status) || status >= 500 || status < 300;
}

/** Undefined for an answer of this status. */
export async function unlessStatus<T>(status: number, answer: Promise<T>): Promise<T | undefined> {
  return await unless((error) => statusOf(error) === status, answer);
}

/** A bucket that is missing is no object that is missing, and has the same status. */
async function unlessAbsent<T>(answer: Promise<T>): Promise<T | undefined> {
  return await unless((error) => nameOf(error) === "NoSuchKey", answer);
}

async function unless<T>(
  isNothing: (error: unknown) => boolean,
  answer: Promise<T>,
): Promise<T | undefined> {
  return await answer.catch((error: unknown) => {
    if (isNothing(error)) return undefined;
    throw error;
  });
}

export function nameOf(error: unknown): string | undefined {
  return error instanceof Error ? error.name : undefined;
}

function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error && "$metadata" in error)) return undefined;
  const metadata = error.$metadata;
  if (typeof metadata !== "object" || metadata === null) return undefined;
  const status = "httpStatusCode" in metadata ? metadata.httpStatusCode : undefined;
  return typeof status === "number" ? status : undefined;
}

/** Whole. @throws Error for one that is larger than anything that is archived */
export async function bodyOf(body: unknown, signal: AbortSignal): Promise<Uint8Array> {
  if (!(body instanceof Readable)) throw new Error("s3: an answer without a body");
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of addAbortSignal(signal, body)) {
    length += chunk.length;
    if (length > OBJECT_BYTES_MAX) throw new Error("s3: larger than anything that is archived");
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}

/** Exports in an S3-compatible bucket: written in parts and read in ranges, each with its time limit and retries. */
import { hash, randomUUID } from "node:crypto";
import {
  AbortMultipartUploadCommand,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  type S3Client,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { ArchiveError } from "./archive.ts";
import { assertExportPath, type ExportFiles, ExportFilesError } from "./export-files.ts";
import { parseUnlockedS3Url } from "./s3-location.ts";
import {
  bodyOf,
  nameOf,
  persistently,
  type S3Patience,
  s3Client,
  unlessStatus,
} from "./s3-objects.ts";

/** S3 takes at most 10,000 of them, each but the last of 5 MiB or more: a file has up to 156 GiB. */
const PART_BYTES = 16 * 1024 * 1024;
const PARTS_MAX = 10_000;
const READ_BYTES = 4 * 1024 * 1024;
/** Of an object: by whose write it is there. */
const WRITER = "writer";

/** A part is large, and nobody waits for an export by the second. */
const PATIENCE: S3Patience = { attempts: 4, attemptMs: 60_000, pauseMs: 100, totalMs: 180_000 };

/** Where an object is, and how requests about it are made. */
interface Place {
  client: S3Client;
  at: { Bucket: string; Key: string };
  attempting: <T>(request: (options: { abortSignal: AbortSignal }) => Promise<T>) => Promise<T>;
}

/**
 * Credentials, and the region if none is named, come from where AWS's SDKs look.
 *
 * @param url as of an archive (s3-location.ts), but without a lock: exports are removed again
 * @throws Error for a URL that says anything else
 */
export function s3Exports(url: string, patience = PATIENCE): ExportFiles {
  const { bucket, prefix, region, endpoint, pathStyle } = parseUnlockedS3Url(url);
  const client = s3Client({
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && { endpoint }),
    forcePathStyle: pathStyle,
  });
  const placeOf = (path: string, stop?: AbortSignal): Place => {
    assertExportPath(path);
    const attempting: Place["attempting"] = (request) =>
      keeping(persistently((abortSignal) => request({ abortSignal }), patience, stop));
    return { client, at: { Bucket: bucket, Key: `${prefix}${path}` }, attempting };
  };

  return {
    write: async (path, chunks, signal) => await write(placeOf(path, signal), chunks),

    renew: async (path, chunks, signal) => {
      const place = placeOf(path, signal);
      await remove(place);
      await write(place, chunks, { IfNoneMatch: "*" });
    },

    size: async (path, signal) => (await headOf(placeOf(path, signal)))?.ContentLength,

    read: async function* (path, { from, to }, signal) {
      const place = placeOf(path, signal);
      for (let start = from; start < to; start += READ_BYTES) {
        yield await readRange(place, start, Math.min(start + READ_BYTES, to));
      }
    },

    remove: async (path, signal) => {
      await remove(placeOf(path, signal));
    },
  };
}

async function remove({ client, at, attempting }: Place): Promise<void> {
  await attempting((options) => client.send(new DeleteObjectCommand(at), options));
}

/** The object is there when its last part is joined to the others, and not before. */
async function write(
  place: Place,
  chunks: AsyncIterable<Uint8Array>,
  condition: { IfNoneMatch?: "*" } = {},
): Promise<void> {
  const { client, at, attempting } = place;
  const Metadata = { [WRITER]: randomUUID() };
  const create = new CreateMultipartUploadCommand({ ...at, ChecksumAlgorithm: "SHA256", Metadata });
  const { UploadId } = await attempting((options) => client.send(create, options));
  const upload = { ...at, UploadId };
  try {
    const parts: CompletedPart[] = [];
    for await (const bytes of partsOf(chunks)) {
      if (parts.length === PARTS_MAX) throw new ExportFilesError("no-room", "too many parts");
      const PartNumber = parts.length + 1;
      const ChecksumSHA256 = hash("sha256", bytes, "base64");
      const part = { ...upload, PartNumber, Body: bytes, ChecksumSHA256 };
      const put = new UploadPartCommand({ ...part, ChecksumAlgorithm: "SHA256" });
      const { ETag } = await attempting((options) => client.send(put, options));
      parts.push({ ETag, PartNumber, ChecksumSHA256 });
    }
    const joined = { ...upload, ...condition, MultipartUpload: { Parts: parts } };
    await complete(place, joined, Metadata[WRITER]);
  } catch (error) {
    const abort = new AbortMultipartUploadCommand(upload);
    // What stays of it a lifecycle rule of the bucket takes away (docs/exports.md).
    await attempting((options) => client.send(abort, options)).catch(() => undefined);
    throw error;
  }
}

/**
 * An answer may be lost, and whoever asks again is told that there is no such upload any more, or that there is an
 * object already: what was joined is known by who wrote it.
 */
async function complete(
  place: Place,
  upload: ConstructorParameters<typeof CompleteMultipartUploadCommand>[0],
  writer: string | undefined,
): Promise<void> {
  const { client, attempting } = place;
  const join = new CompleteMultipartUploadCommand(upload);
  await attempting(async (options) => {
    await client.send(join, options).catch(async (error: unknown) => {
      const isOver = ["NoSuchUpload", "PreconditionFailed"].includes(nameOf(error) ?? "");
      if (!isOver || (await headOf(place))?.Metadata?.[WRITER] !== writer) throw error;
    });
  });
}

async function headOf({ client, at, attempting }: Place) {
  const head = new HeadObjectCommand(at);
  const found = await attempting((options) => unlessStatus(404, client.send(head, options)));
  if (found !== undefined) return found;
  // An answer without a body does not say which of the two is missing.
  const bucket = new HeadBucketCommand({ Bucket: at.Bucket });
  await attempting((options) => client.send(bucket, options));
  return undefined;
}

async function readRange(
  { client, at, attempting }: Place,
  from: number,
  to: number,
): Promise<Uint8Array> {
  const get = new GetObjectCommand({ ...at, Range: `bytes=${from}-${to - 1}` });
  return await attempting(async (options) => {
    const { Body } = await client.send(get, options);
    const bytes = await bodyOf(Body, options.abortSignal);
    if (bytes.length !== to - from) throw new Error("s3: a range that was cut");
    return bytes;
  });
}

/** As large as parts have to be, but for the last one; one that is empty of a file that is empty. */
async function* partsOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let part = Buffer.allocUnsafe(PART_BYTES);
  let used = 0;
  let given = 0;
  for await (const chunk of chunks) {
    for (let taken = 0; taken < chunk.length; ) {
      const room = Math.min(PART_BYTES - used, chunk.length - taken);
      part.set(chunk.subarray(taken, taken + room), used);
      used += room;
      taken += room;
      if (used < PART_BYTES) continue;
      yield part;
      given += 1;
      part = Buffer.allocUnsafe(PART_BYTES);
      used = 0;
    }
  }
  if (used > 0 || given === 0) yield part.subarray(0, used);
}

async function keeping<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof ArchiveError)) throw error;
    throw new ExportFilesError("exports-unavailable", "exports cannot be reached", error.cause);
  }
}

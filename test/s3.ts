/**
 * A small S3 server of one bucket, strict about what the archive relies on: signatures, checksums,
 * conditional writes, pages of lists, retention, uploads in parts. It can fail at any request, in all the ways of a network.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Credentials, signatureProblem } from "./sigv4.ts";

/**
 * What becomes of a request: `lost`, it is done and the answer is not given; `cut`, half of the answer
 * is; `silent`, nothing is said or done; a number, it is answered by that status and not done (404: there
 * is no bucket).
 */
export type Fault = "lost" | "cut" | "silent" | 404 | 409 | 412 | 500 | 503;

/** A request as a fault is chosen by: its method, and the key that it names. */
export interface Asked {
  method: string;
  key: string;
  /** How many came before. */
  number: number;
}

interface StoredObject {
  bytes: Buffer;
  checksum: string;
  lock?: { mode: string; until: string };
  /** Headers `x-amz-meta-…`. */
  metadata?: Record<string, string>;
}

export interface S3Server {
  /** `s3://bucket?…`; parameters may be added to it. */
  url: string;
  objects: Map<string, StoredObject>;
  /** Requests so far. */
  asked: Asked[];
  fault: (asked: Asked) => Fault | undefined;
  close(): Promise<void>;
}

interface Upload {
  /** By their number. */
  parts: Map<number, Buffer>;
  metadata: Record<string, string>;
}

interface S3Options {
  pageSize?: number;
  /** Takes `If-None-Match` for noise, as older stores do. */
  replaces?: boolean;
  locks?: boolean;
}

export const BUCKET = "archive-bucket";
const REGION = "eu-test-1";
const CREDENTIALS: Credentials = { accessKeyId: "AKIATEST", secretAccessKey: "worthless" };
/** Of all parts but the last. */
const PART_BYTES_MIN = 5 * 1024 * 1024;
const NAMES: Readonly<Record<number, string>> = {
  400: "InvalidRequest",
  403: "AccessDenied",
  404: "NoSuchKey",
  409: "ConditionalRequestConflict",
  412: "PreconditionFailed",
  500: "InternalError",
  501: "NotImplemented",
  503: "SlowDown",
};

/** Listens on a free port, and lets the client of this process find the credentials. */
export async function startS3(options: S3Options = {}): Promise<S3Server> {
  Object.assign(process.env, {
    AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
  });
  const bucket = new Bucket(options);
  const http = createServer((request, response) => {
    bucket.serve(request, response).catch(() => request.socket.destroy());
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  const { port } = http.address() as AddressInfo;
  const endpoint = encodeURIComponent(`http://127.0.0.1:${port}`);
  return Object.assign(bucket, {
    url: `s3://${BUCKET}?region=${REGION}&path_style=true&endpoint=${endpoint}`,
    close: async () => {
      http.closeAllConnections();
      http.close();
      await once(http, "close");
    },
  });
}

class Bucket {
  readonly objects = new Map<string, StoredObject>();
  readonly asked: Asked[] = [];
  fault: S3Server["fault"] = () => undefined;
  readonly #options: S3Options;
  /** By the id of their upload. */
  readonly #uploads = new Map<string, Upload>();

  constructor(options: S3Options) {
    this.#options = options;
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const url = new URL(request.url ?? "", "http://localhost");
    const [, bucket, ...rest] = url.pathname.split("/").map(decodeURIComponent);
    const asked = {
      method: request.method ?? "",
      key: rest.join("/"),
      number: this.asked.length,
    };
    this.asked.push(asked);
    const fault = this.fault(asked);
    if (fault === "silent") return;
    if (fault === 404) return void refuse(response, 404, "NoSuchBucket");
    if (typeof fault === "number") return void refuse(response, fault);
    const problem = signatureProblem(request, body, CREDENTIALS);
    if (problem !== undefined) return void refuse(response, 403, problem);
    if (bucket !== BUCKET) return void refuse(response, 404, "NoSuchBucket");
    const answer = this.#answer(request, url.searchParams, asked.key, body);
    if (fault === "lost") return void request.socket.destroy();
    if (typeof answer === "number") return void refuse(response, answer);
    if (answer === "NoSuchUpload") return void refuse(response, 404, answer);
    response.writeHead(answer.status ?? 200, {
      ...answer.headers,
      "content-length": answer.body.length,
    });
    if (fault === "cut") {
      response.write(answer.body.subarray(0, answer.body.length >> 1), () => {
        request.socket.destroy();
      });
    } else {
      response.end(request.method === "HEAD" ? undefined : answer.body);
    }
  }

  #answer(request: IncomingMessage, query: URLSearchParams, key: string, body: Buffer): Answer {
    const { method } = request;
    const upload = this.#uploads.get(query.get("uploadId") ?? "");
    if (query.has("uploads")) return this.#begin(request);
    if (query.has("uploadId") && upload === undefined) return "NoSuchUpload";
    if (upload !== undefined) return this.#upload(request, upload, { key, query, body });
    if (method === "PUT") return this.#put(request, key, body);
    if (method === "DELETE") return this.#delete(key);
    if (method === "POST" && query.has("delete")) return this.#remove(request, body);
    if (method === "GET" && query.get("list-type") === "2") return this.#list(query);
    if (method === "HEAD" && key === "") return { headers: {}, body: Buffer.of() };
    const stored = this.objects.get(key);
    if (stored === undefined) return 404;
    const { checksum, lock, metadata } = stored;
    const headers = {
      ...metadata,
      "x-amz-checksum-sha256": checksum,
      ...(lock && {
        "x-amz-object-lock-mode": lock.mode,
        "x-amz-object-lock-retain-until-date": lock.until,
      }),
    };
    if (method !== "GET" && method !== "HEAD") return 501;
    const [, from, to] = /^bytes=([0-9]+)-([0-9]+)$/.exec(request.headers.range ?? "") ?? [];
    if (from === undefined) return { headers, body: stored.bytes };
    return { status: 206, body: stored.bytes.subarray(Number(from), Number(to) + 1) };
  }

  #begin({ headers }: IncomingMessage): Answer {
    if (headers["x-amz-checksum-algorithm"] !== "SHA256") return 400;
    const id = `upload-${this.#uploads.size}`;
    const own = Object.entries(headers).filter(([name]) => name.startsWith("x-amz-meta-"));
    const metadata = Object.fromEntries(own.map(([name, value]) => [name, String(value)]));
    this.#uploads.set(id, { parts: new Map(), metadata });
    const result = `<UploadId>${id}</UploadId>`;
    const body = `<InitiateMultipartUploadResult>${result}</InitiateMultipartUploadResult>`;
    return { body: Buffer.from(body) };
  }

  /** A part, all of them joined, or none of them. */
  #upload(
    { headers, method }: IncomingMessage,
    { parts, metadata }: Upload,
    { key, query, body }: { key: string; query: URLSearchParams; body: Buffer },
  ): Answer {
    const id = query.get("uploadId") ?? "";
    const checksum = (bytes: Buffer) => createHash("sha256").update(bytes).digest("base64");
    if (method === "DELETE") {
      this.#uploads.delete(id);
      return { body: Buffer.of() };
    }
    if (method === "PUT") {
      if (headers["x-amz-checksum-sha256"] !== checksum(body)) return 400;
      parts.set(Number(query.get("partNumber")), body);
      return { headers: { etag: `"${checksum(body)}"` }, body: Buffer.of() };
    }
    if (headers["if-none-match"] === "*" && this.objects.has(key)) return 412;
    const named = [...body.toString().matchAll(/<Part>.*?<\/Part>/gs)].map(([part]) => part);
    const joined = named.map((part) => parts.get(Number(/<PartNumber>(\d+)</.exec(part)?.[1])));
    const isSaid = named.every((part, i) => part.includes(checksum(joined[i] ?? Buffer.of())));
    const isLarge = joined.slice(0, -1).every((part) => (part?.length ?? 0) >= PART_BYTES_MIN);
    if (named.length === 0 || !isSaid || !isLarge) return 400;
    const bytes = Buffer.concat(joined.map((part) => part ?? Buffer.of()));
    this.objects.set(key, { bytes, checksum: checksum(bytes), metadata });
    this.#uploads.delete(id);
    return { body: Buffer.from("<CompleteMultipartUploadResult></CompleteMultipartUploadResult>") };
  }

  #delete(key: string): Answer {
    this.objects.delete(key);
    return { status: 204, body: Buffer.of() };
  }

  #put({ headers }: IncomingMessage, key: string, bytes: Buffer): Answer {
    const checksum = createHash("sha256").update(bytes).digest("base64");
    if (headers["x-amz-checksum-sha256"] !== checksum) return 400;
    if (headers["if-none-match"] !== "*") return 501;
    if (this.objects.has(key) && !this.#options.replaces) return 412;
    const mode = headers["x-amz-object-lock-mode"];
    const until = headers["x-amz-object-lock-retain-until-date"];
    if (typeof mode !== "string" || typeof until !== "string") {
      this.objects.set(key, { bytes, checksum });
      return { body: Buffer.of() };
    }
    if (!this.#options.locks || headers["x-amz-sdk-checksum-algorithm"] !== "SHA256") return 400;
    this.objects.set(key, { bytes, checksum, lock: { mode, until } });
    return { body: Buffer.of() };
  }

  #remove({ headers }: IncomingMessage, body: Buffer): Answer {
    const checksum = createHash("sha256").update(body).digest("base64");
    if (headers["x-amz-checksum-sha256"] !== checksum) return 400;
    const errors: string[] = [];
    for (const [, text = ""] of body.toString().matchAll(/<Key>([^<]*)<\/Key>/g)) {
      const until = this.objects.get(text)?.lock?.until;
      if (until === undefined || Date.parse(until) < Date.now()) this.objects.delete(text);
      else errors.push(`<Error><Key>${text}</Key><Code>AccessDenied</Code></Error>`);
    }
    return { body: Buffer.from(`<DeleteResult>${errors.join("")}</DeleteResult>`) };
  }

  #list(query: URLSearchParams): Answer {
    const [prefix, delimiter] = [query.get("prefix") ?? "", query.get("delimiter")];
    const after = Buffer.from(query.get("continuation-token") ?? "", "hex").toString();
    const folded = new Set(
      Array.from(this.objects.keys())
        .filter((key) => key.startsWith(prefix))
        .map((key) => {
          const end = delimiter === null ? -1 : key.indexOf(delimiter, prefix.length);
          return end < 0 ? key : key.slice(0, end + 1);
        }),
    );
    const left = Array.from(folded).filter((name) => name > after);
    const { pageSize = 1_000 } = this.#options;
    const page = left.sort().slice(0, pageSize);
    const isFolder = (name: string): boolean => !this.objects.has(name);
    const more = left.length > page.length;
    const token = Buffer.from(page.at(-1) ?? "").toString("hex");
    const xml = [
      `<ListBucketResult><IsTruncated>${more}</IsTruncated>`,
      more ? `<NextContinuationToken>${token}</NextContinuationToken>` : "",
      ...page.map((name) =>
        isFolder(name)
          ? `<CommonPrefixes><Prefix>${name}</Prefix></CommonPrefixes>`
          : `<Contents><Key>${name}</Key></Contents>`,
      ),
      "</ListBucketResult>",
    ];
    return { body: Buffer.from(xml.join("")) };
  }
}

type Answer = number | "NoSuchUpload" | Given;

interface Given {
  status?: number;
  headers?: Record<string, string>;
  body: Buffer;
}

function refuse(response: ServerResponse, status: number, code = NAMES[status] ?? "Error"): void {
  response.writeHead(status, { "content-type": "application/xml" });
  response.end(`<?xml version="1.0"?><Error><Code>${code}</Code></Error>`);
}

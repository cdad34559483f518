/**
 * AWS Signature Version 4 in headers, as a server judges it: written from the specification, with
 * nothing of the client that it judges.
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

export interface Credentials {
  accessKeyId: string;
  secretAccessKey: string;
}

const SKEW_MS = 15 * 60_000;
const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([a-z0-9-]+)\/s3\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/;

/** What is wrong with a request's signature, as S3 names it; undefined when nothing is. */
export function signatureProblem(
  request: IncomingMessage,
  body: Uint8Array,
  { accessKeyId, secretAccessKey }: Credentials,
): string | undefined {
  const header = (name: string): string => String(request.headers[name] ?? "");
  const [, keyId, day, region, signed, signature] =
    AUTHORIZATION.exec(header("authorization")) ?? [];
  if (day === undefined || region === undefined || signed === undefined) return "AccessDenied";
  if (keyId !== accessKeyId) return "InvalidAccessKeyId";
  const time = header("x-amz-date");
  if (!time.startsWith(day) || Math.abs(Date.now() - instantOf(time)) > SKEW_MS) {
    return "RequestTimeTooSkewed";
  }
  const names = signed.split(";");
  const amz = Object.keys(request.headers).filter((name) => name.startsWith("x-amz-"));
  if (!["host", ...amz].every((name) => names.includes(name))) return "AccessDenied";
  const payload = header("x-amz-content-sha256");
  if (payload !== sha256(body)) return "XAmzContentSHA256Mismatch";

  const [path = "", query = ""] = (request.url ?? "").split("?");
  const canonical = [
    request.method,
    path,
    canonicalQuery(query),
    ...names.map((name) => `${name}:${header(name).trim().replace(/ +/g, " ")}`),
    "",
    signed,
    payload,
  ].join("\n");
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", time, scope, sha256(canonical)].join("\n");
  let key = Buffer.from(`AWS4${secretAccessKey}`);
  for (const part of scope.split("/")) key = hmac(key, part);
  const given = Buffer.from(signature ?? "", "hex");
  return timingSafeEqual(hmac(key, text), given) ? undefined : "SignatureDoesNotMatch";
}

/** `20261129T161500Z` */
function instantOf(time: string): number {
  return Date.parse(
    time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"),
  );
}

function canonicalQuery(query: string): string {
  return query
    .split("&")
    .filter(Boolean)
    .map((pair) => {
      const [name = "", value = ""] = pair.split("=");
      return `${encoded(name)}=${encoded(value)}`;
    })
    .sort()
    .join("&");
}

/** Everything but the unreserved characters of RFC 3986. */
function encoded(text: string): string {
  return encodeURIComponent(decodeURIComponent(text)).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

const sha256 = (data: string | Uint8Array): string =>
  createHash("sha256").update(data).digest("hex");

const hmac = (key: Uint8Array, text: string): Buffer<ArrayBuffer> =>
  Buffer.from(createHmac("sha256", key).update(text).digest());

/** Where an archive in a bucket is, and how it is spoken to. */
import type { Lock } from "./s3-objects.ts";

/** Where an archive is, as `s3://bucket/prefix?region=…&endpoint=…&path_style=…&lock=…&lock_days=…` says. */
export interface S3Location {
  bucket: string;
  /** Empty, or with a slash at its end. */
  prefix: string;
  region: string | undefined;
  endpoint: string | undefined;
  pathStyle: boolean;
  lock: { mode: Lock["mode"]; days: number } | undefined;
}

const PARAMETERS = ["region", "endpoint", "path_style", "lock", "lock_days"];
const DAYS_MAX = 36_500;

/** @throws Error for a URL that says anything else */
export function parseS3Url(text: string): S3Location {
  const url = new URL(text);
  const { searchParams: given } = url;
  if (url.username !== "" || url.password !== "" || url.hash !== "" || url.port !== "") {
    throw new Error("archive: an s3: URL has a bucket, a prefix and parameters, and nothing else");
  }
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(url.hostname)) {
    throw new Error("archive: no bucket of this name");
  }
  for (const name of given.keys()) {
    if (PARAMETERS.includes(name) && given.getAll(name).length === 1) continue;
    throw new Error(`archive: ${name} is no parameter of an s3: URL, or there twice`);
  }
  const prefix = url.pathname.split("/").filter(Boolean).join("/");
  const endpoint = given.get("endpoint") ?? undefined;
  if (endpoint !== undefined && !/^https?:\/\//.test(endpoint)) {
    throw new Error("archive: endpoint is an http: or https: URL");
  }
  return {
    bucket: url.hostname,
    prefix: prefix === "" ? "" : `${decodeURIComponent(prefix)}/`,
    region: given.get("region") ?? undefined,
    endpoint,
    pathStyle: oneOf(given, "path_style", { true: true, false: false }) ?? false,
    lock: parseLock(given),
  };
}

/** Of what is removed again. @throws Error as `parseS3Url`, and for one with a lock */
export function parseUnlockedS3Url(text: string): Omit<S3Location, "lock"> {
  const { lock, ...location } = parseS3Url(text);
  if (lock !== undefined) throw new Error("exports: what is removed again cannot be locked");
  return location;
}

function parseLock(given: URLSearchParams): S3Location["lock"] {
  const mode = oneOf(given, "lock", {
    compliance: "COMPLIANCE",
    governance: "GOVERNANCE",
  } as const);
  const days = given.get("lock_days");
  if (mode === undefined && days === null) return undefined;
  if (mode !== undefined && /^[1-9][0-9]{0,4}$/.test(days ?? "") && Number(days) <= DAYS_MAX) {
    return { mode, days: Number(days) };
  }
  throw new Error(`archive: lock and lock_days belong together, with 1 to ${DAYS_MAX} days`);
}

function oneOf<T>(given: URLSearchParams, name: string, values: Record<string, T>): T | undefined {
  const text = given.get(name);
  if (text === null) return undefined;
  const value = Object.hasOwn(values, text) ? values[text] : undefined;
  if (value === undefined)
    throw new Error(`archive: ${name} is ${Object.keys(values).join(" or ")}`);
  return value;
}

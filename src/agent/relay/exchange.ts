/** What gitlab-runner's requests are about, as far as the relay takes an interest (facts: its 19.4 sources). */
import { createHash } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { LosslessNumber, parse, stringify } from "lossless-json";
import { z } from "zod";
import { decodeUtf8 } from "../../core/text.ts";
import { IntegerText, NonEmptyText, Text } from "../../core/unit.ts";
import { type RawHeaders, valuesOf } from "./headers.ts";

export type Exchange =
  | { kind: "request" } // POST /jobs/request: a job is given out
  | { kind: "update"; job: string } // PUT /jobs/:id: its state
  | { kind: "trace"; job: string } // PATCH /jobs/:id/trace: more of its log
  | { kind: "other" };

const REQUEST = /^\/api\/v4\/jobs\/request(?:\?|$)/;
const JOB = /^\/api\/v4\/jobs\/([1-9][0-9]{0,18})(\/trace)?(?:\?|$)/;

/** @param path as in the request line */
export function exchangeOf(method: string, path: string): Exchange {
  if (method === "POST" && REQUEST.test(path)) return { kind: "request" };
  const [, job, trace] = JOB.exec(path) ?? [];
  if (job === undefined) return { kind: "other" };
  if (method === "PUT" && trace === undefined) return { kind: "update", job };
  if (method === "PATCH" && trace !== undefined) return { kind: "trace", job };
  return { kind: "other" };
}

/** By which requests are told apart, and nothing else can be asked for. */
export type TokenHash = string;

/** What of a job's payload leaves this module: ids, and never a token, a variable or a name. */
export interface GivenJob {
  id: string;
  uniqueId: string;
  runner: string;
  projectId: string;
  rootNamespaceId: string;
  timeoutMs: string | undefined;
  token: TokenHash | undefined;
}

const Id = z
  .instanceof(LosslessNumber)
  .transform((number) => number.value)
  .pipe(IntegerText);
/** An old GitLab leaves out some of it, or says 0. */
const KnownId = Id.refine((id) => id !== "0");
const Payload = z.object({
  id: KnownId,
  job_info: z.object({
    instance_uuid: NonEmptyText,
    project_id: KnownId,
    root_namespace_id: KnownId,
  }),
  runner_info: z.object({ timeout: Id.optional().catch(undefined), uuid: NonEmptyText }),
  token: NonEmptyText.optional().catch(undefined),
});

/** Undefined for what is no job, or is one without the ids that a heartbeat needs. */
export function readGivenJob(body: Uint8Array, encoding: string): GivenJob | undefined {
  const payload = Payload.safeParse(readJson(body, encoding)).data;
  if (payload === undefined) return undefined;
  const { id, job_info, runner_info, token } = payload;
  const { timeout = "0" } = runner_info;
  return {
    id,
    uniqueId: job_info.instance_uuid,
    runner: runner_info.uuid,
    projectId: job_info.project_id,
    rootNamespaceId: job_info.root_namespace_id,
    timeoutMs: timeout === "0" || timeout.length > 15 ? undefined : `${timeout}000`,
    token: token === undefined ? undefined : hashOf(token),
  };
}

/** Of the body of `POST /jobs/request`; empty from a runner that has none. */
export function readSystemId(body: Uint8Array): string {
  const Body = z.object({ system_id: Text });
  return Body.safeParse(readJson(body, "")).data?.system_id ?? "";
}

export interface Update {
  /** `last`: the job has ended. `none`: none of these, or not said as both we and GitLab read it. */
  state: "pending" | "running" | "last" | "none";
  /** All that it shows. */
  tokens: TokenHash[];
  /** The one that GitLab looks at, where there is no doubt. */
  token: TokenHash | undefined;
}

const STATES: ReadonlyMap<string, Update["state"]> = new Map([
  ["pending", "pending"],
  ["running", "running"],
  ["success", "last"],
  ["failed", "last"],
]);
const UpdateBody = z.object({
  state: z.string().optional().catch(undefined),
  token: NonEmptyText.optional().catch(undefined),
});

/** @param body of `PUT /jobs/:id`; empty for one that was too long to be kept */
export function readUpdate(path: string, headers: RawHeaders, body: Uint8Array): Update {
  const { state: text = "", token } = UpdateBody.safeParse(readJson(body, "")).data ?? {};
  // GitLab takes parameters from the query and from forms too: then what is in a body may be for us alone.
  const isPlain =
    !path.includes("?") &&
    valuesOf(headers, "content-encoding").length === 0 &&
    /^application\/json *(?:;|$)/i.test(valuesOf(headers, "content-type").join());
  const hash = token === undefined ? [] : [hashOf(token)];
  const tokens = [...new Set([...tokensOf(headers), ...hash])];
  const state = STATES.get(text) ?? "none";
  return {
    state: state === "last" && !isPlain ? "none" : state,
    tokens,
    token: isPlain && tokens.length === 1 ? hash[0] : undefined,
  };
}

/** Of a request about a job. */
export function tokensOf(headers: RawHeaders): TokenHash[] {
  return valuesOf(headers, "job-token").map(hashOf);
}

function hashOf(token: string): TokenHash {
  return createHash("sha256").update(token).digest("base64");
}

/**
 * The runner's own `PUT state=running`, turned into the one by which it would end the job: its token, and
 * its info to the last digit. GitLab has this reason for what it ends itself for want of compute minutes,
 * and does not retry after it.
 */
export function endOf(body: Uint8Array): string | undefined {
  const Update = z.object({ info: z.unknown().optional(), token: z.string().optional() });
  const update = Update.safeParse(readJson(body, "")).data;
  if (update === undefined) return undefined;
  const { info, token } = update;
  return stringify({ info, token, state: "failed", failure_reason: "ci_quota_exceeded" });
}

/** A decoded job is a few megabytes at the most; beyond this it is somebody's bomb. */
const JSON_BYTES_MAX = 32 * 1024 * 1024;

function readJson(body: Uint8Array, encoding: string): unknown {
  try {
    const bytes =
      encoding === "gzip" ? gunzipSync(body, { maxOutputLength: JSON_BYTES_MAX }) : body;
    return parse(decodeUtf8(bytes) ?? "");
  } catch {
    return undefined; // whoever it is for will say so
  }
}

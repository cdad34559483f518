/** What is said of jobs while they run: as few signed texts as hold them. */

import { JWS_CHARS_MAX } from "../../core/body.ts";
import { canonical } from "../../core/json.ts";
import { headerSegment } from "../../core/jws.ts";
import { HEARTBEAT_JOBS_MAX, type Heartbeat, type RunningJob } from "../../core/quota/heartbeat.ts";
import { TYP } from "../../core/report.ts";
import { utf8Length } from "../../core/text.ts";
import { instantText } from "../../core/unit.ts";
import { type SigningKey, signer } from "../key.ts";

/** A job of this host and how long it has run so far. */
export interface Running {
  /** Of the GitLab instance. */
  uniqueId: string;
  runner: Heartbeat["runner"];
  job: RunningJob;
}

/** One compact JWS, and the jobs that it names, in its order. */
export interface Signed<R extends Running = Running> {
  jws: string;
  running: readonly R[];
}

/** Of Ed25519, in base64url, with both dots. */
const SIGNATURE_CHARS = 86 + 2;

/**
 * One JWS or several for each runner, each within the 4,096 bytes that a reader takes.
 * @param now milliseconds since the epoch
 */
export function signHeartbeats<R extends Running>(
  key: SigningKey,
  log: string,
  running: readonly R[],
  now: number,
): Signed<R>[] {
  const sign = signer(key, TYP.heartbeat);
  const header = headerSegment(key.kid, TYP.heartbeat);
  const room = Math.floor(((JWS_CHARS_MAX - header.length - SIGNATURE_CHARS) * 3) / 4);
  const issued_at = instantText(now);
  return byRunner(running).flatMap((jobs) => {
    const runner = jobs[0].runner;
    const rest = { issued_at, log, runner };
    const left = room - utf8Length(canonical({ ...rest, jobs: [] }));
    return pack(jobs, left).map((part) => {
      const payload = { ...rest, jobs: part.map(({ job }) => job) } satisfies Heartbeat;
      return { jws: sign(payload), running: part };
    });
  });
}

function byRunner<R extends Running>(running: readonly R[]): [R, ...R[]][] {
  const groups = new Map<string, [R, ...R[]]>();
  for (const one of running) {
    const name = canonical(one.runner);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [one]);
    else group.push(one);
  }
  return [...groups.values()];
}

/** In order, as many as fit: `bytes` are what the jobs of one text may take. */
function pack<R extends Running>(running: readonly R[], bytes: number): R[][] {
  const parts: R[][] = [];
  let part: R[] = [];
  let left = 0;
  for (const one of running) {
    const size = canonical(one.job).length + 1; // digits and names are ASCII; a comma follows
    if (size > left || part.length === HEARTBEAT_JOBS_MAX) {
      part = [];
      parts.push(part);
      left = bytes;
    }
    part.push(one);
    left -= size;
  }
  return parts;
}

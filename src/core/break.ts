/** The body of a `break` entry, and what it is opened once by. */
import type { Body } from "./entry.ts";
import { type Sha256, sha256 } from "./hash.ts";
import { canonical } from "./json.ts";
import { encodeBase64, encodeUtf8 } from "./text.ts";

type BreakBody = Body<"break">;

/** What a break is about; what it is not about is left out. */
export interface Finding {
  readonly code: BreakBody["code"];
  readonly tracking: BreakBody["tracking"];
  /** The usage month that it concerns. */
  readonly month: string;
  /** Tells it from others of its code: the same finding has the same, whoever finds it and when. */
  readonly about: Readonly<Record<string, string>>;
  readonly detail: string;
  readonly difference_ms?: bigint;
  readonly job_id?: string;
  readonly namespace_id?: string;
  readonly runner_id?: string;
  readonly kid?: string;
  readonly usage?: bigint;
}

/** What tells a break from all others. */
export type Identity = Pick<Finding, "about" | "code" | "tracking">;

/** Base64. */
export function fingerprint({ about, code, tracking }: Identity, hash: Sha256 = sha256): string {
  return encodeBase64(hash(encodeUtf8(canonical({ about: { ...about }, code, tracking }))));
}

export function breakBody(finding: Finding, salt: string, hash: Sha256 = sha256): BreakBody {
  return {
    code: finding.code,
    detail: finding.detail,
    difference_ms: String(finding.difference_ms ?? 0n),
    fingerprint: fingerprint(finding, hash),
    job_id: finding.job_id ?? "",
    kid: finding.kid ?? "",
    month: finding.month,
    namespace_id: finding.namespace_id ?? "",
    runner_id: finding.runner_id ?? "",
    salt,
    tracking: finding.tracking,
    usage: finding.usage === undefined ? "" : String(finding.usage),
  };
}

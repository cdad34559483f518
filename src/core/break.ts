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
  /** Index of the entry that ended the same one before; absent: it is the first. */
  readonly after?: bigint;
  /** Index of the entry that says so: a break that stood before it is about something else. */
  readonly since?: bigint;
  readonly detail: string;
  readonly difference_ms?: bigint;
  readonly job_id?: string;
  readonly namespace_id?: string;
  readonly runner_id?: string;
  readonly kid?: string;
  readonly usage?: bigint;
}

/** What tells a break from all others. */
export type Identity = Pick<Finding, "about" | "after" | "code" | "since" | "tracking">;

/** Base64. */
export function fingerprint(
  { about, after, code, tracking }: Identity,
  hash: Sha256 = sha256,
): string {
  const again = after !== undefined && { after: String(after) };
  const identity = canonical({ about: { ...about }, ...again, code, tracking });
  return encodeBase64(hash(encodeUtf8(identity)));
}

/** Others say it, and may say it again. What was missing and has come is on the log for ever. */
const RECURRING: readonly BreakBody["code"][] = [
  "duration",
  "foreign-runner",
  "other-namespace",
  "source-count",
];

/** Whether what is found is another difference than that of a break which has ended. */
export function isAnother(
  { code, since }: Identity,
  { index, outcome }: { index: bigint; outcome: string },
): boolean {
  if (since !== undefined && since > index) return true;
  // What two persons have decided about stays decided.
  return outcome === "healed" && RECURRING.includes(code);
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

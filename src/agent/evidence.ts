/**
 * What shows that a log broke its word. Whoever has the log's vkeys can judge a file of these without
 * the agent, the service, or us; so they stay until a person takes them away.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { createFile } from "./durable.ts";
import type { Proved } from "./proof.ts";
import type { Result } from "./spool-record.ts";
import type { Trust } from "./trust.ts";

/**
 * `other-leaf`: the proof leads from another entry than was promised. `other-entry`: the entry is not
 * what the code says of the report. `overdue`: after 24 hours no checkpoint covers it. `withheld`: one
 * does, and there is no proof, or no way to it from the one before. `refused`: the service will not prove
 * it. `rolled-back`, `inconsistent`: the log is not the one that it was. `no-answer`: of a report the
 * service says neither where it stands nor that it is refused, again and again.
 * `forged-receipt`: does not verify, or is not for these results. `unknown-key`: after 24 hours the log
 * has not named the key that signed it. `no-receipt`: after 24 hours there is none.
 */
export type Reason =
  | "other-leaf"
  | "other-entry"
  | "overdue"
  | "withheld"
  | "refused"
  | "rolled-back"
  | "inconsistent"
  | "no-answer"
  | "forged-receipt"
  | "unknown-key"
  | "no-receipt";

/** What a service does with every answer, once it does it: one file for each day says as much as all. */
const DAILY: ReadonlySet<Reason> = new Set(["no-answer", "unknown-key", "no-receipt"]);

/** Of one log and reason, until a person takes some away: whoever lies must not fill the disk by it. */
const FILES_MAX = 100;

export interface Evidence {
  reason: Reason;
  /** RFC 3339, by this host's clock. */
  found_at: string;
  /** The service's clock less this host's, in milliseconds: by it, a reader sees a host's clock that jumped. */
  clock_offset_ms?: number;
  trust: Trust;
  /** As they came, and when by this host's clock; left out where the reason is about checkpoints alone. */
  promise?: { answered_at: string; receipt?: string; results: readonly Result[] };
  /** The newest that was verified before, as a signed note; `""` for none. */
  kept_checkpoint: string;
  /** What the service answered when it was asked for proof. */
  answer?: Proved;
}

/**
 * Durable on return. The same finding, found again, is the same file: what was promised tells it, not the
 * receipt, of which each answer has another.
 */
export function writeEvidence(folder: string, evidence: Evidence): void {
  const { answer, found_at, promise, reason, trust } = evidence;
  const kind = `${trust.log}-${reason}-`;
  const results = promise && JSON.stringify(promise.results);
  const about = results ?? `${evidence.kept_checkpoint}${answer?.checkpoint}`;
  const digest = createHash("sha256").update(about).digest("hex").slice(0, 16);
  const path = join(folder, `${kind}${DAILY.has(reason) ? found_at.slice(0, 10) : digest}.json`);
  const names = evidenceOf(folder, trust.log).filter((name) => name.startsWith(kind));
  if (names.length >= FILES_MAX || existsSync(path)) return;
  createFile(path, `${JSON.stringify({ v: "1", ...evidence }, undefined, 2)}\n`);
}

/** Names of the files about one log. */
export function evidenceOf(folder: string, log: string): string[] {
  return readdirSync(folder).filter((name) => name.startsWith(`${log}-`) && name.endsWith(".json"));
}

/**
 * What shows that a log broke its word. Whoever has the log's vkeys can judge a file of these without
 * the agent, the service, or us; so they stay until a person takes them away.
 */
import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createFile } from "./durable.ts";
import type { Proved } from "./proof.ts";
import type { Result } from "./spool-record.ts";
import type { Trust } from "./trust.ts";

/**
 * `other-leaf`: the proof leads from another entry than was promised. `overdue`: after 24 hours no
 * checkpoint covers it. `withheld`: one does, and there is no proof. `refused`: the service will
 * not prove it. `rolled-back`, `inconsistent`: the log is not the one that it was.
 * `forged-receipt`: does not verify, or is not for these results. `unknown-key`: after 24 hours the log
 * has not named the key that signed it.
 */
export type Reason =
  | "other-leaf"
  | "overdue"
  | "withheld"
  | "refused"
  | "rolled-back"
  | "inconsistent"
  | "forged-receipt"
  | "unknown-key";

export interface Evidence {
  reason: Reason;
  /** RFC 3339, by this host's clock. */
  found_at: string;
  trust: Trust;
  /** As they came; left out where the reason is about checkpoints alone. */
  promise?: { receipt: string; results: readonly Result[] };
  /** The newest that was verified before, as a signed note; `""` for none. */
  kept_checkpoint: string;
  /** What the service answered when it was asked for proof. */
  answer?: Proved;
}

/** Durable on return. The same finding, found again, is the same file. */
export function writeEvidence(folder: string, evidence: Evidence): void {
  const { answer, promise, reason, trust } = evidence;
  const about = promise?.receipt ?? `${evidence.kept_checkpoint}${answer?.checkpoint}`;
  const digest = createHash("sha256").update(about).digest("hex").slice(0, 16);
  const text = `${JSON.stringify({ v: "1", ...evidence }, undefined, 2)}\n`;
  createFile(join(folder, `${trust.log}-${reason}-${digest}.json`), text);
}

/** Names of the files about one log. */
export function evidenceOf(folder: string, log: string): string[] {
  return readdirSync(folder).filter((name) => name.startsWith(`${log}-`) && name.endsWith(".json"));
}

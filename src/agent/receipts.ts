/** How the promises of the logs stand, for people and as JSON. */
import { join } from "node:path";
import type { Client } from "./client.ts";
import { deliver } from "./deliver.ts";
import { evidenceOf } from "./evidence.ts";
import { AgentError } from "./failure.ts";
import type { Findings } from "./findings.ts";
import { hold } from "./hold.ts";
import { Patience } from "./patience.ts";
import { keptCheckpoint } from "./proof.ts";
import type { Divergence } from "./spool-record.ts";
import type { AgentState } from "./state.ts";
import { standingOf } from "./trust.ts";

/** One log. Promises are counted by the receipts that make them. */
export interface Account {
  log: string;
  /** False where no key of the log is known: then nothing can be proven, and nothing is deleted. */
  provable: boolean;
  /** Entries under the newest verified checkpoint. */
  size: string;
  divergence: Divergence;
  promises: {
    proven: number;
    pending: number;
    broken: number;
    unverified: number;
    missing: number;
    forged: number;
  };
  reports: { signed: number; answered: number; proven: number };
  /** Files that a person has yet to look at, and to take away. */
  evidence: string[];
  /** Why the log could not be asked. */
  problem?: string;
}

/** From the state folder alone. */
export function accountOf(state: AgentState, log: string): Account {
  const spool = state.spool(log);
  const trust = state.trust(log);
  const { broken, kept } = spool.promises;
  const open = { good: 0, unverified: 0, missing: 0, forged: 0 };
  for (const answered of spool.open()) {
    const unjudged = answered.receipt === undefined ? "missing" : "unverified";
    open[trust === undefined ? unjudged : standingOf(trust, answered)] += 1;
  }
  const { good: pending, ...others } = open;
  return {
    log,
    provable: trust !== undefined,
    size: String(keptCheckpoint(spool.checkpoint)?.size ?? 0n),
    divergence: spool.divergence,
    promises: { proven: kept, pending, broken, ...others },
    reports: spool.reports,
    evidence: evidenceOf(state.evidence, log).map((name) => join(state.evidence, name)),
  };
}

/** A person asked, and waits; and yet no import can run meanwhile. */
const PATIENCE_MS = 10 * 60_000;
const ATTEMPTS = 4;

/**
 * Sends what waits, holds one log to its receipts, sends again what it turns out not to have, and says how
 * it stands then.
 * @throws AgentError of delivery; what keeps the log from being asked is in `problem`
 */
export async function check(
  state: AgentState,
  log: string,
  client: Client,
  options: { batch: number; onProgress: (done: number, total: number) => void },
): Promise<Account> {
  const spool = state.spool(log);
  const send = (): Promise<void> => deliver({ log, spool, client }, options.batch, () => undefined);
  await send();
  let problem: string | undefined;
  try {
    const patience = new Patience(PATIENCE_MS, ATTEMPTS);
    await hold({ state, log, client, patience, onProgress: options.onProgress });
  } catch (error) {
    if (!canWait(error)) throw error;
    problem = error.message;
  }
  await send();
  spool.prune(client.now());
  return { ...accountOf(state, log), ...(problem !== undefined && { problem }) };
}

/** Is there anything that a person has to look at? */
export function isAlarming({ divergence, evidence, problem }: Account): boolean {
  return divergence !== "" || evidence.length > 0 || problem !== undefined;
}

/** What stands in the way of asking a log, and may be gone the next time. */
export function canWait(error: unknown): error is AgentError {
  const codes = ["unavailable", "refused", "untrusted", "protocol"];
  return error instanceof AgentError && codes.includes(error.code);
}

/** A sentence about what is not as it should be; empty when all is well. */
export function alarmOf({ broken, divergence, forged, missing, unverified }: Findings): string {
  const counts = Object.entries({ broken, forged, missing, unverified });
  const receipts = counts.flatMap(([name, count]) => (count > 0 ? `${count} ${name}` : []));
  const parts = divergence === "" ? [] : [divergenceText(divergence)];
  if (receipts.length > 0) parts.push(`receipts: ${receipts.join(", ")}`);
  return parts.length === 0 ? "" : `${parts.join("; ")}.`;
}

const COLUMNS = ["proven", "pending", "broken", "unverified", "missing", "forged"] as const;

/** A table of all logs, and below it whatever needs a sentence. */
export function accountsText(accounts: readonly Account[]): string {
  const rows = accounts.map(({ log, promises }) => [log, ...COLUMNS.map((name) => promises[name])]);
  const table = [["log", ...COLUMNS], ...rows].map(([log, ...cells]) =>
    [String(log).padEnd(32), ...cells.map((cell) => String(cell).padStart(10))].join(" "),
  );
  return [...table, ...accounts.flatMap(sentencesOf)].join("\n");
}

export function sentencesOf(account: Account): string[] {
  const { divergence, evidence, log, problem, provable, reports, size } = account;
  const sentences = [
    provable
      ? `${reports.proven} of ${reports.answered} reports proven, under a checkpoint of ${size} entries.`
      : "No key of the log is known: nothing can be proven, and nothing is deleted. See `agent trust --help`.",
  ];
  if (divergence !== "") {
    sentences.push(
      `${divergenceText(divergence)}: what may be lost was sent again; nothing more is proven, and nothing is deleted.`,
    );
  }
  if (problem !== undefined) sentences.push(`Not asked: ${problem}`);
  for (const path of evidence) sentences.push(`Evidence: ${path}`);
  return sentences.map((sentence) => `${log}: ${sentence}`);
}

function divergenceText(divergence: Exclude<Divergence, "">): string {
  return divergence === "withheld"
    ? "the log does not show how it goes on from what it was"
    : `the log is ${divergence}`;
}

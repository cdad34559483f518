/**
 * Watches a log for what is strange in it by itself: durations that no job may have, hours that a runner cannot
 * have had, sudden jumps, clocks that are off. Sums grow with their mark in one transaction, so that nothing is
 * counted twice. Breaks are written before it, so that none is lost, and not within it: whoever holds a connection
 * and asks for another one may wait for ever.
 */
import {
  type AnomalyBounds,
  clockOffset,
  overCapacity,
  overTimeout,
  suddenJump,
} from "../../core/anomaly.ts";
import type { Finding } from "../../core/break.ts";
import { readAttestation } from "../../core/claim.ts";
import type { Transaction } from "../../store/connect.ts";
import { type Heard, keepHeard } from "../../store/counters.ts";
import { readHead } from "../../store/heads.ts";
import { moveReconcileMark, readReconcileMark } from "../../store/reconcile-marks.ts";
import { type NewlySaid, readNewlySaid } from "../../store/reported.ts";
import { transact } from "../../store/transact.ts";
import { addNamespaceDays, addRunnerHours, readLongUsages } from "../../store/usage-rates.ts";
import { decodedAs } from "../usage/show.ts";
import { type Opening, openBreaks } from "./open.ts";

export interface Watching extends Opening {
  anomalies: AnomalyBounds;
}

/** Entries of one page. */
const PAGE = 5_000n;

interface Page {
  log: string;
  from: bigint;
  to: bigint;
}

/** A page of new entries. @returns how many there were; breaks that were opened */
export async function watch(
  watching: Watching,
  log: string,
): Promise<{ entries: bigint; opened: number }> {
  const { sql } = watching;
  const from = await readReconcileMark(sql, log, "watch");
  const head = await readHead(sql, log);
  const nothing = { entries: 0n, opened: 0 };
  if (from === undefined || head === undefined || head.size <= from) return nothing;
  const to = head.size < from + PAGE ? head.size : from + PAGE;
  const page = { log, from, to };
  const entries = to - from;
  try {
    return (await addUp(watching, page, "untold")) ? { entries, opened: 0 } : nothing;
  } catch (error) {
    if (!(error instanceof Untold)) throw error;
    const opened = await openBreaks(watching, log, error.findings);
    return { entries: (await addUp(watching, page, "told")) ? entries : 0n, opened };
  }
}

/** Whether all that there was has been looked at. */
export function isCaughtUp({ entries }: { entries: bigint }): boolean {
  return entries < PAGE;
}

/** Undoes what was added up: its breaks come first, and by a transaction of the log's. */
class Untold extends Error {
  readonly findings: readonly Finding[];

  constructor(findings: readonly Finding[]) {
    super("watch: breaks come first");
    this.findings = findings;
  }
}

/** @returns false: somebody else has. @throws Untold where something was found that nobody was told of */
async function addUp(
  { anomalies, sql }: Watching,
  { log, ...range }: Page,
  state: "told" | "untold",
): Promise<boolean> {
  return await transact(sql, async (tx) => {
    // First, and so that it holds the row: sums of one range are added once, whoever else is at it.
    if (!(await moveReconcileMark(tx, log, "watch", range))) return false;
    const findings = await findingsOf(tx, anomalies, log, range);
    if (state === "untold" && findings.length > 0) throw new Untold(findings);
    return true;
  });
}

async function findingsOf(
  tx: Transaction,
  bounds: AnomalyBounds,
  log: string,
  range: { from: bigint; to: bigint },
): Promise<Finding[]> {
  const days = await addNamespaceDays(tx, log, range);
  const hours = await addRunnerHours(tx, log, range);
  const long = await readLongUsages(tx, log, range, bounds.timeout_ms);
  const said = (await readNewlySaid(tx, log, range, ["attestation", "key"])).map(heardOf);
  for (const { heard } of said) await keepHeard(tx, log, heard);
  return [
    ...days.flatMap(({ namespace, ...day }) => {
      return suddenJump({ ...day, namespace_id: String(namespace) }, bounds);
    }),
    ...hours.flatMap(({ before, duration, hour, hours_before, runner }) => {
      const busy = {
        hour: hour.toISOString(),
        duration_ms: duration,
        before_ms: before,
        hours_before,
      };
      return overCapacity({ ...busy, runner_id: String(runner) }, bounds);
    }),
    ...long.flatMap((job) => overTimeout(job, bounds)),
    ...said.flatMap(({ heard: { at, kid }, offset_ms }) => {
      return clockOffset({ at, kid, offset_ms }, bounds);
    }),
  ];
}

function heardOf({ at, bytes, kind }: NewlySaid): { heard: Heard; offset_ms: bigint } {
  if (bytes === null) throw new Error("watch: an entry without its bytes");
  if (kind === "key") {
    const { kid } = decodedAs("key", bytes).body;
    const heard = { at: at.toISOString(), by: kind, counter: 0n, kid, spool: 0n };
    return { heard, offset_ms: 0n };
  }
  const signed = readAttestation(decodedAs("attestation", bytes).body.jws);
  if (signed === undefined) throw new Error("watch: an attestation that cannot be read");
  const { clock_offset_ms, counter, spool } = signed.payload;
  return {
    heard: {
      at: at.toISOString(),
      by: "attestation",
      counter: BigInt(counter),
      kid: signed.signer,
      spool: BigInt(spool),
    },
    offset_ms: BigInt(clock_offset_ms),
  };
}

/** How much of a run stands on the log: by the log itself, so that whoever goes on begins where it ends. */

import { Problem } from "../../core/problem.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import {
  type CreditRunRow,
  readCreditRun,
  readCreditRuns,
  readNewestLine,
  readNewestPack,
} from "../../store/credit-runs.ts";
import { readEntry } from "../../store/entries.ts";
import { decodedAs } from "../usage/show.ts";

type Reader = Sql | Transaction;

/** Lines 0 … n−1 stand. Asked under the head's lock it stays true for the transaction. */
export async function linesWritten(sql: Reader, log: string, run: CreditRunRow): Promise<bigint> {
  if (run.form === "goodwill_pack") return await packsWritten(sql, log, run);
  const newest = await readNewestLine(sql, log, run.index);
  if (newest === undefined) return 0n;
  const { first_line, lines } = decodedAs(
    "adjustment",
    (await readEntry(sql, log, newest)).bytes,
  ).body;
  return BigInt(first_line) + BigInt(lines.length);
}

/** Versions of a run's packs count lines: 1 … n gave them, n+1 … 2n took them back. */
async function packsWritten(sql: Reader, log: string, run: CreditRunRow): Promise<bigint> {
  const { index, lines, reverses } = run;
  const bytes = await readNewestPack(sql, log, reverses ?? index);
  if (bytes === undefined) return 0n;
  const version = BigInt(decodedAs("pack", bytes).body.source_version);
  if (reverses === null) return version < lines ? version : lines;
  return version > lines ? version - lines : 0n;
}

const ANY_INDEX = 2n ** 63n - 1n;

/**
 * While a run's lines are not all there, nothing else is corrected: what its lines were found from must not
 * change between them.
 *
 * @throws Problem `credit-run-under-way`
 */
export async function assertNoneUnderWay(tx: Transaction, log: string): Promise<void> {
  // Only the newest can be: before it another could not begin.
  const [newest] = await readCreditRuns(tx, log, { below: ANY_INDEX, limit: 1 });
  if (newest === undefined || (await linesWritten(tx, log, newest)) === newest.lines) return;
  throw new Problem("credit-run-under-way", { run: String(newest.index) });
}

/** @throws Problem `not-found` */
export async function runAt(sql: Reader, log: string, index: bigint): Promise<CreditRunRow> {
  const run = await readCreditRun(sql, log, index);
  if (run === undefined) throw new Problem("not-found");
  return run;
}

/** The rows of a closed month and its statement: written once, from entries, in one transaction. */
import { formatComputeMs } from "../../core/charge.ts";
import { canonical } from "../../core/json.ts";
import { allocationLine, packLine } from "../../core/month/lines.ts";
import { computeMs } from "../../core/unit.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readEntry } from "../../store/entries.ts";
import {
  type EndedInto,
  insertAllocations,
  insertPackRolls,
  insertStatement,
  type MonthEnd,
} from "../../store/month-ends.ts";
import { closeMonth } from "../../store/months.ts";
import { transact } from "../../store/transact.ts";
import type { ClosingSet } from "../export/closing-set.ts";
import { decodedAs } from "../usage/show.ts";
import { countMonth, figuresFrom, type Sink } from "./count.ts";
import { bePatient } from "./patience.ts";
import { draftOf, stateAt } from "./statement.ts";

/**
 * What stands already is left as it is.
 *
 * @param exports the month's files as entries give them
 * @throws Error where entries give other figures or files than were signed
 */
export async function writeRows(
  sql: Sql,
  log: string,
  end: MonthEnd,
  exports: ClosingSet,
): Promise<void> {
  await transact(sql, async (tx) => {
    await bePatient(tx);
    await closeMonth(tx, log, end.month, end.closing);
    const other = await insertRows(tx, log, end, { exports });
    if (other !== undefined) throw new Error(`rows: ${end.month}: ${other}`);
  });
}

interface Inserting {
  /** Absent: the month's files are not looked at. */
  exports?: ClosingSet;
  into?: EndedInto;
}

/**
 * As far as they came they are to be given up where a string is answered: it says what of the month entries give
 * otherwise than was signed.
 *
 * @param tx has the month's rows of rollups, and all that they are counted from
 */
export async function insertRows(
  tx: Transaction,
  log: string,
  { month, closing, index }: MonthEnd,
  { exports, into }: Inserting,
): Promise<string | undefined> {
  const of = { log, month };
  const counted = await countMonth({ tx, ...of, closing }, sinkInto(tx, of, into));
  const closed = decodedAs("month_closed", (await readEntry(tx, log, index)).bytes);
  const figures = { ...figuresFrom(counted), exports: exports ?? closed.body.exports };
  const names = Object.keys(figures) as (keyof typeof figures)[];
  const other = names.find((name) => canonical(figures[name]) !== canonical(closed.body[name]));
  if (other !== undefined) return `${other} is not what was signed`;
  const draft = await draftOf({ tx, log, body: closed.body, counted });
  if (typeof draft === "string") return draft;
  const { sha256, text } = stateAt(draft, closed);
  if (sha256 !== closed.body.statement_sha256) return "its statement is not what was signed";
  await insertStatement(tx, { ...of, text }, into);
  return undefined;
}

function sinkInto(
  tx: Transaction,
  of: { log: string; month: string },
  into: EndedInto | undefined,
): Sink {
  return {
    allocations: async (lines) => {
      const rows = lines.map(({ namespace, share }) => {
        const { packs, ...line } = allocationLine(namespace, share);
        const drawn = share.packs.reduce((sum, pack) => sum + pack.drawn, 0n);
        return { ...line, drawn: formatComputeMs(computeMs(drawn)), packs: canonical(packs) };
      });
      await insertAllocations(tx, of, rows, into);
    },
    packs: async (lines) => {
      const rows = lines.map(({ namespace, roll }) => packLine(namespace, roll));
      await insertPackRolls(tx, of, rows, into);
    },
  };
}

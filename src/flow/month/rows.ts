/** The rows of a closed month and its statement: written once, from entries, in one transaction. */
import { formatComputeMs } from "../../core/charge.ts";
import { canonical } from "../../core/json.ts";
import { allocationLine, packLine } from "../../core/month/lines.ts";
import { encodeStatement } from "../../core/month/statement.ts";
import { computeMs } from "../../core/unit.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readEntry } from "../../store/entries.ts";
import {
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
import { statementOf } from "./statement.ts";

/**
 * What stands already is left as it is.
 *
 * @param exports the month's files as entries give them
 * @throws Error where entries give other figures or files than were signed
 */
export async function writeRows(
  sql: Sql,
  log: string,
  { month, closing, index }: MonthEnd,
  exports: ClosingSet,
): Promise<void> {
  const of = { log, month };
  await transact(sql, async (tx) => {
    await bePatient(tx);
    await closeMonth(tx, log, month, closing);
    const counted = await countMonth({ tx, ...of, closing }, sinkInto(tx, of));
    const closed = decodedAs("month_closed", (await readEntry(tx, log, index)).bytes);
    const figures = { ...figuresFrom(counted), exports };
    const names = Object.keys(figures) as (keyof typeof figures)[];
    const other = names.find((name) => canonical(figures[name]) !== canonical(closed.body[name]));
    if (other !== undefined) throw new Error(`rows: ${other} of ${month} is not what was signed`);
    const statement = await statementOf({ tx, closed, counted });
    await insertStatement(tx, { ...of, text: encodeStatement(statement) });
  });
}

function sinkInto(tx: Transaction, of: { log: string; month: string }): Sink {
  return {
    allocations: async (lines) => {
      const rows = lines.map(({ namespace, share }) => {
        const { packs, ...line } = allocationLine(namespace, share);
        const drawn = share.packs.reduce((sum, pack) => sum + pack.drawn, 0n);
        return { ...line, drawn: formatComputeMs(computeMs(drawn)), packs: canonical(packs) };
      });
      await insertAllocations(tx, of, rows);
    },
    packs: async (lines) => {
      await insertPackRolls(
        tx,
        of,
        lines.map(({ namespace, roll }) => packLine(namespace, roll)),
      );
    },
  };
}

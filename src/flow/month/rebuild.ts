/**
 * What is kept of closed months, counted anew from their entries: compared with what stands, and what is missing
 * written when asked. In a transaction of its own, in which reports are taken in as ever.
 */
import type { Sql, Transaction } from "../../store/connect.ts";
import { ENDED_TABLES } from "../../store/month-ends.ts";
import {
  createEndedScratch,
  dropMonth,
  lockEnded,
  readClosed,
  scratch,
} from "../../store/rebuilds.ts";
import { transact } from "../../store/transact.ts";
import { type RebuiltTable, settle } from "../usage/settle.ts";
import { insertRows } from "./rows.ts";

/** A closed month of which entries give something else than was signed: nothing is written of it. */
interface OtherMonth {
  log: string;
  month: string;
  /** For a person to read. */
  why: string;
}

export interface RebuiltMonths {
  tables: RebuiltTable[];
  other: { count: number; first?: OtherMonth };
}

/** @param sql of the owner; every table that is derived from entries one by one is right, and the views are filled */
export async function rebuildMonths(sql: Sql, write: boolean): Promise<RebuiltMonths> {
  const mode = "isolation level repeatable read";
  return await transact(sql, (tx) => rebuildIn(tx, write), mode);
}

async function rebuildIn(tx: Transaction, write: boolean): Promise<RebuiltMonths> {
  await lockEnded(tx);
  await createEndedScratch(tx);
  const other: RebuiltMonths["other"] = { count: 0 };
  for (const { log, ...end } of await readClosed(tx)) {
    const why = await insertRows(tx, log, end, { into: scratch });
    if (why === undefined) continue;
    const { month } = end;
    await dropMonth(tx, { log, month });
    other.first ??= { log, month, why };
    other.count += 1;
  }
  return { tables: await settle(tx, ENDED_TABLES, write), other };
}

/** The tables of core/beside.ts: one statement for each table, whatever its columns. */
import { BESIDE, type BesideRow, type BesideTable, type ColumnType } from "../core/beside.ts";
import { Problem } from "../core/problem.ts";
import type { Sql, Transaction } from "./connect.ts";
import { instant } from "./instant.ts";
import type { Positioned } from "./snapshots.ts";

const UNIQUE_VIOLATION = "23505";

/**
 * In the transaction of their entries. @throws Problem `already-decided`: what one of them decides was
 * decided before
 */
export async function insertBeside(
  tx: Transaction,
  log: string,
  rows: readonly BesideRow[],
): Promise<void> {
  try {
    await insertRows(tx, log, rows, (table) => table);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === UNIQUE_VIOLATION)) {
      throw error;
    }
    const problem = new Problem("already-decided");
    problem.cause = error;
    throw problem;
  }
}

/** @param into the table that rows of a table go into: itself, or one of the same columns */
export async function insertRows(
  tx: Transaction,
  log: string,
  rows: readonly BesideRow[],
  into: (table: BesideTable) => string,
): Promise<void> {
  for (const table of new Set(rows.map((each) => each.table))) {
    const target = tx(into(table));
    const own = rows.filter((each) => each.table === table);
    const records = JSON.stringify(own.map(({ row }) => ({ log, ...row })));
    await tx`
      insert into ${target}
      select * from json_populate_recordset(null::${target}, ${records}::text::json)`;
  }
}

/** A row as texts, and the entry that it belongs to. */
export type BesideRead = Positioned & { [column: string]: string | bigint | null };

export const besideRows =
  (log: string, table: BesideTable, from = 0n) =>
  (sql: Sql) => {
    const columns = Object.entries<ColumnType>(BESIDE[table]).map(([name, type]) =>
      type === "timestamptz" ? sql`, ${instant(sql, name)}` : sql`, ${sql(name)}::text`,
    );
    return sql`
    select index as position, index::text as index ${columns}
    from ${sql(table)}
    where log = ${log} and index >= ${from}
    order by index`;
  };

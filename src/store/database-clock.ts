/** The one clock that all processes of a service can read. */
import type { Sql } from "./connect.ts";

/** Epoch milliseconds. */
export async function readDatabaseClock(sql: Sql): Promise<number> {
  const [row] = await sql<[{ now: Date }]>`select clock_timestamp() as now`;
  return row.now.getTime();
}

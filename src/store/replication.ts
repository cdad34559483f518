/** Is a commit that was answered on more than one machine? */
import type { Sql } from "./connect.ts";

/**
 * `synchronous`: COMMIT waits for a standby (and hangs without one). `missing`: what was accepted in
 * the last moments before this machine is lost may be lost with it.
 */
export async function replication(sql: Sql): Promise<"synchronous" | "missing"> {
  const [row] = await sql<[{ standbys: string; commit: string }]>`
    select
      current_setting('synchronous_standby_names') as standbys,
      current_setting('synchronous_commit') as commit
  `;
  const waits = row.standbys !== "" && !["off", "local"].includes(row.commit);
  return waits ? "synchronous" : "missing";
}

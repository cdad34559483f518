/** Reading as a viewer: the database itself shows the rows of one log, and of some namespaces of it (0014_viewers.sql). */
import type { Sql, Transaction } from "./connect.ts";
import { transact } from "./transact.ts";

/** What somebody may see who is a viewer and nothing else. */
export interface Viewer {
  log: string;
  namespaces: "*" | readonly bigint[];
}

/** From here to the end of the transaction. */
export async function asViewer(tx: Transaction, { log, namespaces }: Viewer): Promise<void> {
  const seen = namespaces === "*" ? "*" : `{${namespaces.join(",")}}`;
  await tx`
    select
      set_config('minutebook.log', ${log}, true),
      set_config('minutebook.namespaces', ${seen}, true),
      set_config('search_path', 'tenant, public', true),
      set_config('role', 'minutebook_viewer', true)
  `;
}

/** Several reads, as a viewer in a transaction of their own. */
export async function readAs<T>(
  sql: Sql,
  viewer: Viewer | undefined,
  look: (sql: Sql | Transaction) => Promise<T>,
): Promise<T> {
  if (viewer === undefined) return await look(sql);
  const looked = async (tx: Transaction): Promise<T> => {
    await asViewer(tx, viewer);
    return await look(tx);
  };
  return await transact(sql, looked, "read only");
}

/** Table `namespace_lists`: namespaces that credit runs are about, by digest (migrations/0013). */
import { plainColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";
import { pagesOf } from "./pages.ts";

/** Again it changes nothing. @param namespaces in their order, each once */
export async function insertNamespaceList(
  sql: Sql,
  log: string,
  sha256: string,
  namespaces: readonly bigint[],
): Promise<void> {
  await sql`
    insert into namespace_lists (log, sha256, namespaces)
    values (${log}, ${sha256}, ${plainColumn(namespaces)}::text::bigint[])
    on conflict on constraint namespace_lists_pkey do nothing`;
}

export async function hasNamespaceList(
  tx: Transaction,
  log: string,
  sha256: string,
): Promise<boolean> {
  const rows = await tx`
    select
    from namespace_lists
    where log = ${log} and sha256 = ${sha256}`;
  return rows.length > 0;
}

/** In their order, a page at a time. */
export async function* readNamespaceList(
  tx: Transaction,
  log: string,
  sha256: string,
): AsyncGenerator<string> {
  const query = tx`
    select namespace::text
    from namespace_lists, unnest(namespaces) with ordinality as listed (namespace, place)
    where log = ${log} and sha256 = ${sha256}
    order by place
  `;
  const pages = pagesOf<{ namespace: string }>(tx, query, PAGE_ROWS);
  for await (const page of pages) for (const { namespace } of page) yield namespace;
}

const PAGE_ROWS = 5_000;

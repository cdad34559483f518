/** Table `accounts`: who pays for a namespace, from when on. */
import { plainColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

export interface Account {
  /** Of the `account` entry. */
  index: bigint;
  account_id: string;
  subscription_id: string;
}

/** A version of a namespace's account, or of that of all others. */
export interface AccountVersion {
  index: bigint;
  source: string;
  source_version: bigint;
}

/**
 * In force at an instant: the newest with `effective_from` not after it, of the namespace or else of the
 * instance.
 *
 * @param namespace `""`: the instance's alone
 * @param below entries from there on are not looked at
 */
export async function accountAt(
  sql: Sql | Transaction,
  log: string,
  namespace: string,
  instant: string,
  below: bigint = ANY_INDEX,
): Promise<Account | undefined> {
  const [row] = await sql<Account[]>`
    select index, account_id, subscription_id
    from accounts
    where log = ${log} and (namespace_id = ${keyOf(namespace)} or namespace_id is null)
      and index < ${below} and effective_from <= ${instant}
    order by namespace_id nulls last, index desc
    limit 1`;
  return row;
}

/** Whose account a month is charged to; nulls: nobody's. */
export interface Payer {
  account_id: string | null;
  subscription_id: string | null;
}

/** Of each of these namespaces what is in force before `until`. */
export async function readPayers(
  tx: Transaction,
  log: string,
  namespaces: readonly string[],
  at: { until: string; below: bigint },
): Promise<Map<string, Payer>> {
  const rows = await tx<({ namespace_id: string } & Payer)[]>`
    select asked.namespace_id::text, account_id, subscription_id
    from unnest(${plainColumn(namespaces)}::text::bigint[]) as asked (namespace_id)
    ${joinPayer(tx, log, at)}`;
  return new Map(rows.map(({ namespace_id, ...payer }) => [namespace_id, payer]));
}

/** To rows of `asked`, by their `namespace_id`: `account_id` and `subscription_id` as in `Payer`. */
export function joinPayer(
  tx: Transaction,
  log: string,
  { until, below }: { until: string; below: bigint },
) {
  return tx`
    left join lateral (
      select account_id, subscription_id
      from accounts
      where log = ${log} and index < ${below} and effective_from < ${until}
        and (accounts.namespace_id = asked.namespace_id or accounts.namespace_id is null)
      order by accounts.namespace_id nulls last, index desc
      limit 1
    ) as payer on true`;
}

/** All that was said of one key, oldest first. @param namespace `""`: the instance's */
export async function readAccountVersions(
  sql: Sql | Transaction,
  log: string,
  namespace: string,
  below: bigint = ANY_INDEX,
): Promise<AccountVersion[]> {
  return await sql<AccountVersion[]>`
    select index, source, source_version
    from accounts
    where log = ${log} and namespace_id is not distinct from ${keyOf(namespace)} and index < ${below}
    order by index`;
}

function keyOf(namespace: string): string | null {
  return namespace === "" ? null : namespace;
}

/** Above every index that an entry can have. */
const ANY_INDEX = 2n ** 63n - 1n;

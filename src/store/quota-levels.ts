/** Table `quota_levels`: the level that stands for each namespace, and what it was told so far. */
import type { Level } from "../core/quota/level.ts";
import { plainColumn } from "./columns.ts";
import type { Transaction } from "./connect.ts";

export interface StandingLevel {
  namespace: string;
  /** In which it stands; in later ones it stands for `none`. */
  month: string;
  level: Level;
  /** Notifications so far. */
  notified: bigint;
  /** Epoch milliseconds: it may be another then, although no entry comes. */
  lookAt: number | undefined;
}

export async function readLevels(
  tx: Transaction,
  log: string,
  namespaces: readonly string[],
): Promise<StandingLevel[]> {
  // LATERAL and OFFSET 0: whatever the statistics say, a look by the key for each.
  const rows = await tx<(Omit<StandingLevel, "lookAt"> & { look_at: Date | null })[]>`
    select asked.namespace::text, month, level, notified, look_at
    from unnest(${plainColumn(namespaces)}::text::bigint[]) as asked (namespace)
    cross join lateral (
      select month, level, notified, look_at
      from quota_levels
      where log = ${log} and namespace_id = asked.namespace
      offset 0
    ) as own`;
  return rows.map(({ look_at, ...level }) => ({ ...level, lookAt: look_at?.getTime() }));
}

/** Namespaces that are to be looked at although no entry is about them. */
export async function namespacesDue(
  tx: Transaction,
  log: string,
  { at, limit }: { at: number; limit: number },
): Promise<string[]> {
  const rows = await tx<{ namespace: string }[]>`
    select namespace_id::text as namespace
    from quota_levels
    where log = ${log} and look_at <= ${new Date(at)}
    order by look_at, namespace_id
    limit ${limit}`;
  return rows.map(({ namespace }) => namespace);
}

/** What stands for a month that has not come is to be looked at again now. */
export async function recallLevels(
  tx: Transaction,
  log: string,
  { at, month }: { at: number; month: string },
): Promise<void> {
  await tx`
    update quota_levels
    set look_at = ${new Date(at)}
    where log = ${log} and month > ${month}::text::date`;
}

export async function writeLevels(
  tx: Transaction,
  log: string,
  levels: readonly StandingLevel[],
): Promise<void> {
  if (levels.length === 0) return;
  const looks = levels.map(({ lookAt }) =>
    lookAt === undefined ? undefined : new Date(lookAt).toISOString(),
  );
  await tx`
    insert into quota_levels (log, namespace_id, month, level, notified, look_at)
    select ${log}, *
    from unnest(
      ${plainColumn(levels.map(({ namespace }) => namespace))}::text::bigint[],
      ${plainColumn(levels.map(({ month }) => month))}::text::date[],
      ${plainColumn(levels.map(({ level }) => level))}::text::text[],
      ${plainColumn(levels.map(({ notified }) => notified))}::text::bigint[],
      ${plainColumn(looks)}::text::timestamptz[]
    )
    on conflict (log, namespace_id) do update
      set month = excluded.month, level = excluded.level, notified = excluded.notified,
          look_at = excluded.look_at`;
}
